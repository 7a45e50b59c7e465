// Fields on canvases: values to colours, patch grids, colour bars.

/** Values of a plane in physical units. */
export function valuesOf(plane) {
  if (plane.bits === 32) return plane.data;
  const top = plane.bits === 8 ? 255 : 65535;
  const unit = (plane.high - plane.low) / top;
  const values = new Float32Array(plane.data.length);
  for (let i = 0; i < values.length; i++) values[i] = plane.low + unit * plane.data[i];
  return values;
}

/** Place of a value on a scale, from 0 to 1 within it. */
export function position(value, scale) {
  if (!scale.log) return (value - scale.low) / (scale.high - scale.low);
  return Math.log(Math.max(value, scale.low) / scale.low) / Math.log(scale.high / scale.low);
}

/** An image of values [nx, ny] with x to the right and y upwards; what is missing is clear. */
export function picture(values, [nx, ny], scale, palette) {
  const image = new ImageData(nx, ny);
  for (let i = 0; i < nx; i++) {
    for (let j = 0; j < ny; j++) {
      const value = values[i * ny + j];
      if (Number.isNaN(value) || value === undefined) continue;
      const place = Math.min(255, Math.max(0, Math.round(255 * position(value, scale))));
      const pixel = 4 * ((ny - 1 - j) * nx + i);
      image.data[pixel] = palette[3 * place];
      image.data[pixel + 1] = palette[3 * place + 1];
      image.data[pixel + 2] = palette[3 * place + 2];
      image.data[pixel + 3] = 255;
    }
  }
  return image;
}

const scratch = document.createElement("canvas");

/** Paint values into a box of a context, cell by cell. */
export function paint(context, box, values, shape, scale, palette) {
  [scratch.width, scratch.height] = shape;
  scratch.getContext("2d").putImageData(picture(values, shape, scale, palette), 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(scratch, box.x, box.y, box.width, box.height);
}

/** Borders of patches along an axis of n cells: those that lie within it. */
export function borders(n, patch, start) {
  const found = [];
  if (patch < 2) return found;
  for (let cell = ((start % patch) + patch) % patch; cell <= n; cell += patch) found.push(cell);
  return found;
}

/** Lines of a patch grid over a box. `grid` has `patch` and `start` along both axes shown. */
export function lines(context, box, [nx, ny], grid, ticks = false) {
  context.save();
  context.beginPath();
  context.rect(box.x, box.y, box.width, box.height);
  context.clip();
  // Fine grids are drawn fainter, so that what lies below stays visible.
  const spacing = Math.min((box.width * grid.patch[0]) / nx || Infinity, (box.height * grid.patch[1]) / ny);
  const alpha = Math.min(0.5, Math.max(0.16, spacing / 90));
  for (const [width, style] of [[1.8, `rgba(255,255,255,${0.6 * alpha})`], [0.8, `rgba(0,0,0,${alpha})`]]) {
    context.beginPath();
    for (const x of ticks ? [] : borders(nx, grid.patch[0], grid.start[0])) {
      const place = box.x + (box.width * x) / nx;
      context.moveTo(place, box.y);
      context.lineTo(place, box.y + box.height);
    }
    for (const y of borders(ny, grid.patch[1], grid.start[1])) {
      const place = box.y + box.height * (1 - y / ny);
      context.moveTo(ticks ? box.x + box.width - 10 : box.x, place);
      context.lineTo(box.x + box.width, place);
    }
    context.lineWidth = width;
    context.strokeStyle = style;
    context.stroke();
  }
  context.restore();
}

/** A colour bar from left to right. */
export function bar(canvas, palette) {
  canvas.width = 256;
  canvas.height = 1;
  const image = new ImageData(256, 1);
  for (let i = 0; i < 256; i++) {
    image.data.set([palette[3 * i], palette[3 * i + 1], palette[3 * i + 2], 255], 4 * i);
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
}

/** The next of 1, 2, 5, 10, … at or above a size. */
export function roundUp(size) {
  if (!(size > 0)) return 1e-12;
  const power = 10 ** Math.floor(Math.log10(size));
  const step = [1, 2, 5, 10].find((step) => step * power >= size * (1 - 1e-9));
  return step * power;
}
