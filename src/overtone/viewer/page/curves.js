// The curves below the fields: what each chart shows of the steps so far, and their legend.
import { colour, make, MEASURES } from "./words.js";
import { Chart } from "./charts.js";

export const AXES = ["x", "y", "z"];
const DASHES = [[], [6, 4]];

/** How the lanes' lines look, A's and B's. */
function looks() {
  return ["a", "b"].map((name, n) => ({ colour: colour(name), dash: DASHES[n], name: "AB"[n] }));
}

/** What a lane expects its error to be, with its band; null if nobody asked. */
function band(points, steps, lane, look) {
  const known = points.map((p) => p.lanes[lane]?.estimate ?? null);
  if (!known.some(Boolean)) return null;
  const part = (n) => known.map((estimate) => estimate?.[n] ?? null);
  return { x: steps, y: part(0), low: part(1), high: part(2), colour: look.colour, dash: [2, 3],
    width: 1.2, name: `${look.name} expects`, plain: true };
}

/** Upright lines at the harmonics of the patches in use, along an axis. */
function harmonics(lanes, point, along, looked) {
  return lanes.flatMap((_, lane) => {
    const patch = point?.lanes[lane]?.patch?.[along] ?? 1, { colour: style, dash } = looked[lane];
    return Array.from({ length: patch > 1 ? Math.floor(patch / 2) : 0 },
      (_, j) => ({ x: (j + 1) / patch, colour: style, dash, alpha: 0.35 }));
  });
}

/** A line of the legend. */
function entry(kind, text, title = "") {
  return make("span", { title }, make("b", { className: kind }), text);
}

/** All charts of the page. */
export class Curves {
  constructor(element) {
    this.element = element;
    this.legend = make("div", { className: "legend" });
    this.expected = entry("le", "expected error, with its band", MEASURES.estimate);
    this.error = new Chart("Error", MEASURES.error, { yLog: true, note: "VRMSE, mean of fields", most: 100 });
    this.seams = new Chart("Seams", MEASURES.seams,
      { note: "dB at the grid in use", unit: " dB", floor: 0, ceiling: 3 });
    this.spectrum = new Chart("Residual spectrum", MEASURES.spectrum,
      { yLog: true, xLabel: "cycles per cell", note: "", decades: 7 });
    this.tokens = new Chart("Tokens", MEASURES.tokens, { small: true, note: "a step", floor: 0 });
    this.ms = new Chart("Milliseconds", MEASURES.ms,
      { small: true, note: "a step, the model alone", floor: 0 });
    this.all = [this.error, this.seams, this.spectrum, this.tokens, this.ms];
    element.append(this.legend, this.error.element, this.seams.element, this.spectrum.element,
      make("div", { className: "pair" }, this.tokens.element, this.ms.element));
  }

  /** Say which line is what. */
  name(lanes) {
    this.legend.replaceChildren(entry("la", "A"), ...(lanes === 2 ? [entry("lb", "B")] : []),
      entry("ls", "persistence", MEASURES.persistence),
      this.expected, entry("lh", "harmonics of the patch in use", MEASURES.spectrum));
  }

  /** What the lines are, for a picture without the page's legend. */
  get lines() {
    const own = this.legend.querySelectorAll(".la, .lb").length;
    return [{ text: "A", style: "a", dash: DASHES[0] }, ...(own > 1 ? [{ text: "B", style: "b", dash: DASHES[1] }] : []),
      { text: "persistence", style: "still", dash: [1, 3] },
      ...(this.expected.hidden ? [] : [{ text: "expected error", style: "a", dash: [2, 3] }])];
  }

  /** Draw everything; `points` are the numbers of all steps, `shown` is the one that is seen. */
  draw(frame, points, shown, head, field) {
    const steps = points.map((p) => p.step), looked = looks();
    const now = { marks: [{ x: shown, colour: colour("soft"), width: 1, alpha: 0.7 }], current: shown,
      xRange: [0, Math.max(10, head)] };
    const each = (name, more) => frame.lanes.map((_, n) => (
      { x: steps, y: points.map((p) => p.lanes[n]?.[name] ?? null), ...looked[n], ...more }));
    const still = { x: steps, y: points.map((p) => p.persistence), colour: colour("still"), dash: [1, 3],
      width: 1.5, name: "persistence", plain: true };
    const bands = frame.lanes.map((_, n) => band(points, steps, n, looked[n])).filter(Boolean);
    this.expected.hidden = !bands.length; // adaptive lanes tell one without being asked
    this.error.show({ ...now, series: [still, ...bands, ...each("error")] });
    this.seams.show({ ...now, series: each("seams") });
    this.tokens.show({ ...now, series: each("tokens", { width: 1.5 }) });
    this.ms.show({ ...now, series: each("ms", { width: 1.5 }) });
    this.drawSpectrum(frame, points.find((p) => p.step === shown), looked, field);
  }

  drawSpectrum({ domain, view, lanes }, point, looked, field) {
    const n = domain.shape[view.along];
    const series = lanes.map(({ spectrum }, lane) => ({ ...looked[lane], width: 1.6,
      x: (spectrum ?? []).map((_, k) => k / n).slice(1), y: (spectrum ?? []).slice(1) }));
    this.spectrum.note(`${field} along ${AXES[view.along]}, variance of the truth = 1`);
    this.spectrum.show({ series, marks: harmonics(lanes, point, view.along, looked), xRange: [0, 0.5] });
  }
}
