// What is seen, as files: a PNG picture, and an animated GIF of the steps so far.
import { colour, make } from "./words.js";
import { gif, indexed, sharedPalette } from "./gif.js";

const STYLE = ["a", "b", "ink", "soft", "still", "line", "paper"];
const HUNDREDTHS = 10;

/** Offer a file for saving. */
export function save(blob, name) {
  const address = URL.createObjectURL(blob);
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

/** Red, green and blue of #rrggbb. */
function rgb(text) {
  return [1, 3, 5].map((place) => parseInt(text.slice(place, place + 2), 16));
}

/** A canvas as a PNG. */
export function png(canvas) {
  return new Promise((resolve) => { canvas.toBlob(resolve, "image/png"); });
}

/** Frames of one size, drawn one after the other, as one GIF. */
export class Film {
  constructor(palettes) {
    this.palette = sharedPalette([palettes.field, palettes.signed], STYLE.map((name) => rgb(colour(name))));
    Object.assign(this, { frames: [], known: new Map(), size: [0, 0] });
  }

  add(canvas) {
    this.size = [canvas.width, canvas.height];
    const { data } = canvas.getContext("2d").getImageData(0, 0, ...this.size);
    this.frames.push(indexed(data, this.palette, this.known));
  }

  file() {
    return gif(this.frames, ...this.size, this.palette, HUNDREDTHS);
  }
}
