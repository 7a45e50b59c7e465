// Animated GIF (version 89a) with one palette of 256 colours for all frames.

/** A palette that has a page's colours: its maps, greys and lines. [r, g, b] each. */
export function sharedPalette(maps, others) {
  const colours = [...others];
  for (let i = 0; i < 32; i++) colours.push([1, 1, 1].map(() => Math.round((255 * i) / 31)));
  const each = Math.floor((256 - colours.length) / maps.length);
  for (const map of maps) {
    for (let i = 0; i < each; i++) {
      const place = 3 * Math.round((255 * i) / (each - 1));
      colours.push([map[place], map[place + 1], map[place + 2]]);
    }
  }
  while (colours.length < 256) colours.push([0, 0, 0]);
  return colours.slice(0, 256);
}

/** The number of the nearest colour for every pixel of RGBA data. */
export function indexed(data, palette, known = new Map()) {
  const found = new Uint8Array(data.length / 4);
  for (let i = 0; i < found.length; i++) {
    const [r, g, b] = [data[4 * i], data[4 * i + 1], data[4 * i + 2]];
    const key = ((r >> 2) << 12) | ((g >> 2) << 6) | (b >> 2);
    let best = known.get(key);
    if (best === undefined) {
      let least = Infinity;
      palette.forEach(([pr, pg, pb], n) => {
        const away = (pr - r) ** 2 + (pg - g) ** 2 + (pb - b) ** 2;
        if (away < least) [least, best] = [away, n];
      });
      known.set(key, best);
    }
    found[i] = best;
  }
  return found;
}

/** Variable-width LZW codes of GIF, for 8-bit pixels. */
export function lzw(pixels) {
  const bytes = [], clear = 256, end = 257;
  let width = 9, next = 258, table = new Map(), held = 0, count = 0;
  const put = (code) => {
    held |= code << count;
    count += width;
    while (count >= 8) { bytes.push(held & 255); held >>>= 8; count -= 8; }
  };
  put(clear);
  let prefix = pixels[0];
  for (let i = 1; i < pixels.length; i++) {
    const key = (prefix << 8) | pixels[i];
    const code = table.get(key);
    if (code !== undefined) { prefix = code; continue; }
    put(prefix);
    if (next === 4096) {
      put(clear);
      [width, next, table] = [9, 258, new Map()];
    } else {
      if (next === 1 << width) width++;
      table.set(key, next++);
    }
    prefix = pixels[i];
  }
  put(prefix);
  put(end);
  if (count) bytes.push(held & 255);
  return bytes;
}

/** A GIF of frames of palette numbers, each shown for some hundredths of a second, for ever. */
export function gif(frames, width, height, palette, delay) {
  const low = (n) => [n & 255, n >> 8];
  const text = (s) => [...s].map((letter) => letter.charCodeAt(0));
  const parts = [[...text("GIF89a"), ...low(width), ...low(height), 0xf7, 0, 0], palette.flat(),
    [0x21, 0xff, 11, ...text("NETSCAPE2.0"), 3, 1, 0, 0, 0]];
  for (const pixels of frames) {
    parts.push([0x21, 0xf9, 4, 0, ...low(delay), 0, 0, 0x2c, 0, 0, 0, 0, ...low(width), ...low(height), 0, 8]);
    const codes = lzw(pixels);
    for (let i = 0; i < codes.length; i += 255) {
      const block = codes.slice(i, i + 255);
      parts.push([block.length, ...block]);
    }
    parts.push([0]);
  }
  parts.push([0x3b]);
  return new Blob(parts.map((part) => Uint8Array.from(part)), { type: "image/gif" });
}
