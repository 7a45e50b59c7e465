// The fields: truth, predictions and residuals beside each other, on common scales.
import { make, short } from "./words.js";
import { lines, paint, roundUp, valuesOf } from "./draw.js";

export const GAP = 14;
const CAPTION = 23;
export const LETTERS = ["A", "B"];

/** All values of a frame that are drawn, in physical units. */
export function fieldsOf(frame) {
  const find = (kind, lane) => frame.planes.find((plane) => plane.kind === kind && plane.lane === lane);
  const truthPlane = find("truth", undefined);
  const truth = truthPlane ? valuesOf(truthPlane) : null;
  const lanes = frame.lanes.map((_, lane) => {
    const plane = find("residual", lane) ?? find("prediction", lane);
    const own = valuesOf(plane), made = madeOf(frame, lane, plane.shape);
    if (plane.kind === "residual") {
      return { made, residual: made ? own : own.map(() => NaN), prediction: own.map((r, i) => r + truth[i]) };
    }
    // Of one axis, the truth may end before the prediction does.
    const last = Math.min(made, truth?.length);
    const residual = truth ? own.map((p, i) => (i < last ? p - truth[i] : NaN)) : null;
    return { made, prediction: own, residual };
  });
  const shape = frame.planes[frame.planes.length - 1].shape;
  return { shape, truth, lanes };
}

/** How many of a lane's values were made for the steps that are seen: a lane that stopped stays where it was. */
function madeOf(frame, lane, [rows, cells]) {
  const behind = frame.step - frame.lanes[lane].step;
  if (frame.domain.shape.length > 1) return behind > 0 ? 0 : rows * cells;
  return Math.max(0, rows - behind) * cells;
}

/** The size that all but a few values stay below; 0 if there are none. */
function usualSize(values) {
  const sizes = Array.from(values ?? [], Math.abs).filter((size) => size >= 0).sort((a, b) => a - b);
  return sizes[Math.floor(0.995 * (sizes.length - 1))] ?? 0;
}

/** The axes of the domain to the right and upwards; null stands for time. */
export function axesShown(frame) {
  const ndim = frame.domain.shape.length;
  if (ndim === 1) return [null, 0];
  if (ndim === 2) return [0, 1];
  return [0, 1, 2].filter((axis) => axis !== frame.view.across);
}

/** The patch grid of a lane along the axes that are shown; null if there is none. */
export function gridOf(frame, lane) {
  const point = frame.points[frame.points.length - 1]?.lanes[lane];
  if (!point?.patch) return null;
  const along = (list, other) => axesShown(frame).map((axis) => (axis === null ? other : list[axis]));
  return { patch: along(point.patch, 1), start: along(point.start, 0) };
}

/** Width over height of a panel. */
export function aspectOf(frame) {
  const [x, y] = axesShown(frame);
  if (x === null) return 1.5;
  const ratio = frame.domain.extent[x] / frame.domain.extent[y];
  return Math.min(4, Math.max(0.34, ratio));
}

/** The panels of the page. */
export class Panels {
  constructor(element, { onPaint, onRead }) {
    Object.assign(this, { element, onPaint, onRead, limit: 0, frame: null, grid: true, brush: false,
      pointed: null });
    this.panels = [];
    new ResizeObserver(() => this.draw()).observe(element.parentElement);
  }

  /** Show a frame; `models` are the lanes'. */
  show(frame, models) {
    this.frame = frame;
    this.models = models;
    this.fields = fieldsOf(frame);
    this.fitResidual();
    this.draw();
    this.read(this.pointed);
  }

  /** A common range of residuals that changes in steps, and not with every frame. */
  fitResidual() {
    if (!this.fields.truth && this.limit) return; // "A − B" keeps the scale
    const { low, high } = this.frame.scale, range = high - low;
    // A few cells beyond the scale have its end's colour, so that all others can be told apart.
    const sizes = this.fields.lanes.map(({ residual }) => usualSize(residual));
    // A lane that has run off, further than the field spans, leaves the other one its scale.
    const calm = sizes.filter((size) => size <= range);
    const largest = Math.max(...(calm.length ? calm : sizes));
    const wanted = Math.min(roundUp(largest || range * 1e-3), roundUp(range));
    if (wanted > this.limit || wanted < 0.3 * this.limit) this.limit = wanted;
  }

  /** What is drawn, in order. */
  list() {
    const { truth, lanes } = this.fields, made = Math.min(...lanes.map((lane) => lane.made));
    // Nothing else says that of one axis time goes to the right.
    const over = axesShown(this.frame)[0] === null ? ", x over steps" : "";
    const found = [{ title: `truth${over}`, values: truth, signed: false,
      veil: truth ? "" : "past the end of the data: no truth from here on" }];
    lanes.forEach(({ prediction, residual }, lane) => {
      const stopped = this.frame.lanes[lane].stopped;
      const apart = (p, i) => (i < made ? lanes[0].prediction[i] - p : NaN);
      if (lane) found.push({ title: "A − B", signed: true, values: prediction.map(apart), veil: made ? "" : "one has stopped" });
      found.push({ lane, title: this.titleOf(lane), values: prediction, signed: false,
        grid: true, paint: true, veil: stopped ? "stopped" : "", hard: true });
      found.push({ lane, title: "− truth", values: residual, signed: true, grid: true,
        veil: !lanes[lane].made ? "stopped" : residual ? "" : "no truth to compare with" });
    });
    return found;
  }

  /** A lane's schedule, and its model where there are two; a model without patches has its name alone. */
  titleOf(lane) {
    const { name, patched } = this.models[lane], { schedule } = this.frame.lanes[lane];
    if (!patched) return name;
    return new Set(this.models).size > 1 ? `${schedule} · ${name}` : schedule;
  }

  layout(count) {
    const wide = this.element.parentElement.clientWidth;
    const aspect = aspectOf(this.frame);
    // The curves are to be seen with the fields.
    const tall = Math.min(560, Math.max(300, 0.46 * window.innerHeight));
    let best = { width: 0 };
    for (const columns of count === 6 ? [6, 3] : [3]) {
      const rows = count / columns;
      const most = Math.floor((wide - GAP * (columns - 1)) / columns);
      const width = Math.min(most, Math.floor((tall / rows - CAPTION) * aspect));
      if (width > best.width) best = { width, columns };
    }
    const width = Math.max(best.width, 90);
    return { columns: best.columns ?? 3, width, height: Math.round(width / aspect) };
  }

  draw() {
    if (!this.frame) return;
    const list = this.list();
    const { columns, width, height } = this.layout(list.length);
    this.element.style.gridTemplateColumns = `repeat(${columns}, ${width}px)`;
    while (this.panels.length < list.length) this.panels.push(this.panel(this.panels.length));
    this.panels.splice(list.length).forEach((panel) => panel.element.remove());
    list.forEach((entry, n) => this.fill(this.panels[n], entry, width, height));
  }

  panel(number) {
    const canvas = make("canvas");
    canvas.setAttribute("role", "img");
    const chip = make("span", { className: "chip" }), title = make("span"), note = make("i");
    const veil = make("div", { className: "veil" });
    const element = make("figure", { className: "panel" },
      make("figcaption", {}, chip, title, note), canvas, veil);
    const panel = { element, canvas, chip, title, note, veil };
    const act = (event) => this.touch(panel, event);
    canvas.addEventListener("pointerdown", act);
    canvas.addEventListener("pointermove", act);
    canvas.addEventListener("pointerleave", () => this.read(null));
    this.element.append(element);
    return panel;
  }

  fill(panel, entry, width, height) {
    const ratio = window.devicePixelRatio || 1;
    panel.entry = entry;
    Object.assign(panel.canvas, { width: width * ratio, height: height * ratio });
    Object.assign(panel.canvas.style, { width: `${width}px`, height: `${height}px` });
    panel.canvas.setAttribute("aria-label", `${entry.lane === undefined ? "" : LETTERS[entry.lane]} ${entry.title}`);
    panel.element.classList.toggle("paint", Boolean(entry.paint && this.brush));
    panel.chip.hidden = entry.lane === undefined;
    panel.chip.style.display = entry.lane === undefined ? "none" : "";
    panel.chip.className = `chip ${entry.lane ? "b" : "a"}`;
    panel.chip.textContent = LETTERS[entry.lane] ?? "";
    panel.veil.textContent = entry.veil ?? "";
    panel.veil.hidden = !entry.veil;
    panel.veil.style.display = entry.veil ? "" : "none";
    panel.veil.className = entry.hard ? "veil hard" : "veil";
    this.caption(panel);
    const box = { x: 0, y: 0, width: width * ratio, height: height * ratio };
    this.draft(panel.canvas.getContext("2d"), box, entry);
  }

  caption(panel) {
    panel.title.textContent = panel.entry.title;
    panel.title.title = panel.entry.title;
    panel.note.textContent = panel.reading ?? "";
  }

  /** Tell the values at a place of the panels, of this step and those that follow; null ends it. */
  read(share) {
    this.pointed = share;
    const { shape } = this.fields;
    const cell = share && share.map((s, n) => Math.min(shape[n] - 1, Math.max(0, Math.floor(s * shape[n]))));
    for (const panel of this.panels) {
      const value = cell && panel.entry.values?.[cell[0] * shape[1] + cell[1]];
      panel.reading = cell && panel.entry.values ? short(value) : "";
      this.caption(panel);
    }
    this.onRead(cell ? this.placeOf(cell) : "");
  }

  /** Where a cell's centre is, in the domain's units. */
  placeOf(cell) {
    const { domain } = this.frame, { shape } = this.fields;
    const first = this.frame.step + 1 - shape[0]; // of one axis: the earliest step that is drawn
    const at = axesShown(this.frame).map((axis, n) => (axis === null ? `step ${first + cell[n]}`
      : `${"xyz"[axis]} ${short(((cell[n] + 0.5) / shape[n]) * domain.extent[axis], 2)}`));
    return at.join(", ");
  }

  /** Draw one entry into a box. */
  draft(context, box, entry) {
    context.clearRect(box.x, box.y, box.width, box.height);
    if (!entry.values) return;
    const { shape } = this.fields;
    const scale = entry.signed ? { low: -this.limit, high: this.limit } : this.frame.scale;
    paint(context, box, entry.values, shape, scale, this.palettes[entry.signed ? "signed" : "field"]);
    const grid = entry.grid && this.grid ? gridOf(this.frame, entry.lane) : null;
    if (!grid) return;
    const cells = axesShown(this.frame).map((axis, n) => (axis === null ? shape[n] : this.frame.domain.shape[axis]));
    lines(context, box, cells, grid, axesShown(this.frame)[0] === null);
  }

  touch(panel, event) {
    const { entry } = panel;
    const box = panel.canvas.getBoundingClientRect();
    const share = [(event.clientX - box.left) / box.width, 1 - (event.clientY - box.top) / box.height];
    this.read(share);
    const painting = entry.paint && this.brush && (event.type === "pointerdown" || event.buttons & 1);
    if (painting) this.onPaint(entry.lane, this.cellOf(share));
  }

  /** The cell of the domain at a place of a panel. */
  cellOf(share) {
    const { domain, view } = this.frame;
    const cell = domain.shape.map((n, axis) => (axis === view.across && view.mode === "slice" ? view.index : n >> 1));
    axesShown(this.frame).forEach((axis, n) => {
      if (axis === null) return;
      const cells = domain.shape[axis];
      cell[axis] = Math.min(cells - 1, Math.max(0, Math.floor(share[n] * cells)));
    });
    return cell;
  }
}
