// Texts of the page, and small makers of elements and numbers.

/** A sentence for each measure: its name, then what it means. */
export const MEASURES = {
  error: "VRMSE: how far the prediction is from the truth, in units of the truth's own variation over space; 1 is as bad as predicting the mean.",
  persistence: "persistence: the error of saying that nothing changes, from the frame where the rollout starts.",
  seams: "seams: how much more the residual jumps across the borders of the patches in use than within them, in dB; 0 means no seams.",
  spectrum: "spectrum: power of the residual of the field that is shown, by wavenumber along an axis; a patch grid shows at its harmonics, which upright lines mark.",
  tokens: "tokens: patches of one frame at this step; the work of a step grows with them.",
  ms: "ms: milliseconds that the model itself took for the step, on the machine that serves this page.",
  estimate: "estimate: what the model itself expects its error to be without seeing the truth, with its 90 % band.",
};

export const KEYS = [
  ["space", "play or pause"], ["← →", "one step back, one step on"], ["Home", "start again"],
  ["1 … 9", "a patch of lane A; with Alt, of lane B"], ["S", "shift of lane A on or off; with Alt, of lane B"],
  ["C", "one lane or two"], ["F", "the next field"], ["G", "patch grid"], ["B", "brush"],
  ["T", "light or dark"], ["?", "this page"],
];

/** The element with an id. */
export function byId(id) {
  return document.getElementById(id);
}

/** A new element: its properties, then its children. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("aria-") || name === "for") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children);
  return element;
}

/** A number in few characters. */
export function short(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value), sign = value < 0 ? "−" : "";
  if (size >= 1e5 || size < 1e-3) {
    return sign + size.toExponential(Math.max(0, digits - 2)).replace(/\.0+e/, "e").replace("e+", "e").replace("-", "−");
  }
  return sign + String(Number(size.toPrecision(digits)));
}

/** A schedule without its shift, and whether it has one. */
export function parted(schedule) {
  const place = schedule.indexOf("+shift");
  return place < 0 ? [schedule, false] : [schedule.slice(0, place), true];
}

/** A colour of the page by its name in style.css. */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** Bytes of a text in base64. */
export function bytesOf(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}
