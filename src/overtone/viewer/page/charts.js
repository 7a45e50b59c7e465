// Curves on canvases: axes with few ticks, lines, bands, marks, and a reading under the pointer.
import { colour, make, short } from "./words.js";

const MARGIN = { left: 44, right: 8, top: 8, bottom: 30 };

/** Ticks of a linear axis. */
export function ticks(low, high, most) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(span / most));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => span / s <= most) ?? 10 * power;
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * span; i++) found.push(i * step);
  return found;
}

/** Ticks of a logarithmic axis: powers of ten, and some between them where there are few. */
export function logTicks(low, high) {
  const found = [], decades = Math.log10(high / low);
  const every = Math.max(1, Math.ceil(decades / 4));
  for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++) {
    if (decades > 3 && e % every) continue;
    for (const m of decades <= 2 ? [1, 2, 5] : decades <= 3 ? [1, 3] : [1]) found.push(m * 10 ** e);
  }
  return found.filter((value) => value >= low * 0.999 && value <= high * 1.001);
}

/** Lowest and highest of many values, which may be too many for the arguments of a call. */
function extremes(values) {
  return values.reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [Infinity, -Infinity]);
}

/** A line's places [x, y], as few as pixels need: of each column the first, lowest, highest and last. */
export function thinned(places) {
  const found = [];
  let column = [];
  const close = () => {
    const heights = column.map(([, y]) => y), [low, high] = extremes(heights);
    const kept = new Set([0, heights.indexOf(low), heights.indexOf(high), column.length - 1]);
    found.push(...column.filter((_, i) => kept.has(i)));
    column = [];
  };
  for (const place of places) {
    if (column.length && Math.floor(place[0]) !== Math.floor(column[0][0])) close();
    column.push(place);
  }
  if (column.length) close();
  return found;
}

/** A chart: a heading, a canvas and what is drawn on it. */
export class Chart {
  constructor(title, about, { small = false, ...options } = {}) {
    this.options = { yLog: false, xLabel: "step", unit: "", decades: 9, most: Infinity, ...options };
    this.small = small;
    this.canvas = make("canvas", { title: about });
    this.canvas.setAttribute("role", "img");
    this.heading = make("h3", { title: about }, title, " ", make("span", {}, this.options.note ?? ""));
    this.element = make("figure", { className: small ? "chart half" : "chart" }, this.heading, this.canvas);
    this.data = { series: [] };
    this.pointer = null;
    this.canvas.addEventListener("pointermove", (event) => { this.pointer = event.offsetX; this.draw(); });
    this.canvas.addEventListener("pointerleave", () => { this.pointer = null; this.draw(); });
  }

  /** Say what is drawn, behind the heading. */
  note(text) {
    this.heading.lastChild.textContent = text;
  }

  /** Show other data: series of {x, y, colour, dash, width, low, high, plain}, marks and a current x. */
  show(data) {
    this.data = data;
    this.draw();
  }

  draw() {
    const ratio = window.devicePixelRatio || 1;
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    if (!width) return;
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    const context = this.canvas.getContext("2d");
    context.scale(ratio, ratio);
    this.draft(context, width, height);
    this.reading(context);
    this.canvas.setAttribute("aria-label", this.spoken());
  }

  /** Draw all but the reading from a context's origin on. */
  draft(context, width, height) {
    const margin = { ...MARGIN, bottom: this.small ? 16 : MARGIN.bottom };
    this.box = { x: margin.left, y: margin.top, width: width - margin.left - margin.right,
      height: height - margin.top - margin.bottom };
    this.range();
    this.axes(context);
    context.save();
    context.beginPath();
    context.rect(this.box.x, this.box.y - 3, this.box.width + 3, this.box.height + 6);
    context.clip();
    this.marks(context);
    for (const series of this.data.series) this.line(context, series);
    context.restore();
  }

  range() {
    const { yLog } = this.options;
    const xs = this.data.series.flatMap((s) => (s.x.length ? [s.x[0], s.x[s.x.length - 1]] : []));
    const ys = this.data.series.flatMap((s) => [...s.y, ...(s.high ?? [])])
      .filter((y) => y !== null && Number.isFinite(y) && (!yLog || y > 0));
    this.x = this.data.xRange ?? [Math.min(0, ...xs), Math.max(10, ...xs)];
    // What runs off goes along the upper edge and leaves the others their scale.
    const usual = ys.filter((y) => y <= this.options.most);
    let [low, high] = extremes(usual.length ? usual : ys);
    if (usual.length && usual.length < ys.length) high = this.options.most;
    if (!ys.length) [low, high] = yLog ? [0.01, 1] : [0, 1];
    if (yLog) {
      if (high / low < 4) [low, high] = [low / 2, high * 2];
      low = Math.max(low / 1.15, high * 10 ** -this.options.decades);
      high *= 1.15;
    } else {
      low = Math.min(low, this.options.floor ?? low);
      high = Math.max(high, this.options.ceiling ?? high);
      const pad = 0.06 * (high - low || 1);
      [low, high] = [low - (low === 0 ? 0 : pad), high + pad];
    }
    this.y = [low, high];
  }

  px(x) {
    return this.box.x + (this.box.width * (x - this.x[0])) / (this.x[1] - this.x[0] || 1);
  }

  py(value) {
    const [low, high] = this.y, y = Math.min(value, high);
    const share = this.options.yLog ? Math.log(y / low) / Math.log(high / low) : (y - low) / (high - low);
    return this.box.y + this.box.height * (1 - share);
  }

  axes(context) {
    const { box, options } = this;
    context.font = "11px system-ui, sans-serif";
    context.strokeStyle = colour("line");
    context.fillStyle = colour("soft");
    context.lineWidth = 1;
    context.textAlign = "right";
    context.textBaseline = "middle";
    const most = this.small ? 2.5 : 4; // below 2.5 there may be no tick but 0
    const own = options.yLog ? logTicks(...this.y) : ticks(...this.y, most);
    for (const y of own) {
      const place = Math.round(this.py(y)) + 0.5;
      context.globalAlpha = 0.6;
      context.beginPath();
      context.moveTo(box.x, place);
      context.lineTo(box.x + box.width, place);
      context.stroke();
      context.globalAlpha = 1;
      context.fillText(short(y), box.x - 6, place);
    }
    context.textAlign = "center";
    context.textBaseline = "top";
    for (const x of ticks(...this.x, box.width > 220 ? 6 : 4)) {
      context.fillText(short(x), this.px(x), box.y + box.height + 4);
    }
    if (!this.small) {
      context.fillText(options.xLabel, box.x + box.width / 2, box.y + box.height + 17);
    }
  }

  marks(context) {
    for (const { x, colour: style, dash = [], width = 1, alpha = 0.55 } of this.data.marks ?? []) {
      context.strokeStyle = style;
      context.globalAlpha = alpha;
      context.lineWidth = width;
      context.setLineDash(dash);
      context.beginPath();
      context.moveTo(this.px(x), this.box.y);
      context.lineTo(this.px(x), this.box.y + this.box.height);
      context.stroke();
    }
    context.globalAlpha = 1;
    context.setLineDash([]);
  }

  line(context, series) {
    const fine = (y) => y !== null && y !== undefined && Number.isFinite(y) && (!this.options.yLog || y > 0);
    if (series.low) {
      context.fillStyle = series.colour;
      context.globalAlpha = 0.16;
      const inside = series.x.map((_, i) => i).filter((i) => fine(series.low[i]) && fine(series.high[i]));
      const edge = (values) => thinned(inside.map((i) => [this.px(series.x[i]), this.py(values[i])]));
      this.path(context, [...edge(series.high), ...edge(series.low).reverse()]);
      context.fill();
      context.globalAlpha = 1;
    }
    context.strokeStyle = series.colour;
    context.lineWidth = series.width ?? 2;
    context.setLineDash(series.dash ?? []);
    context.lineJoin = "round";
    let run = [];
    series.x.forEach((x, i) => {
      if (fine(series.y[i])) run.push([this.px(x), this.py(series.y[i])]);
      if (i < series.x.length - 1 && fine(series.y[i])) return;
      this.path(context, thinned(run));
      context.stroke();
      run = [];
    });
    context.setLineDash([]);
    const here = series.x.indexOf(this.data.current);
    if (here < 0 || !fine(series.y[here]) || series.plain) return;
    context.fillStyle = series.colour;
    context.beginPath();
    context.arc(this.px(series.x[here]), this.py(series.y[here]), this.small ? 2.5 : 3.5, 0, 7);
    context.fill();
  }

  /** A line through places, to be stroked or filled. */
  path(context, places) {
    context.beginPath();
    for (const [x, y] of places) context.lineTo(x, y);
  }

  reading(context) {
    if (this.pointer === null || !this.data.series.some((s) => s.x.length)) return;
    const wanted = this.x[0] + ((this.pointer - this.box.x) / this.box.width) * (this.x[1] - this.x[0]);
    const said = [];
    let nearest = null;
    for (const { x, y, name } of this.data.series) {
      if (!x.length || !name) continue;
      let best = 0;
      x.forEach((value, i) => { if (Math.abs(value - wanted) < Math.abs(x[best] - wanted)) best = i; });
      nearest ??= x[best];
      said.push(`${name} ${short(y[best])}`);
    }
    if (nearest === null) return;
    context.strokeStyle = colour("soft");
    context.lineWidth = 0.8;
    context.beginPath();
    context.moveTo(this.px(nearest), this.box.y);
    context.lineTo(this.px(nearest), this.box.y + this.box.height);
    context.stroke();
    const text = `${short(nearest)}: ${said.join(", ")}${this.options.unit}`;
    context.font = "11px system-ui, sans-serif";
    const width = context.measureText(text).width + 10;
    const left = Math.min(Math.max(this.px(nearest) - width / 2, 2), this.box.x + this.box.width - width);
    context.fillStyle = colour("tint");
    context.fillRect(left, 0, width, 17);
    context.fillStyle = colour("ink");
    context.textAlign = "left";
    context.textBaseline = "middle";
    context.fillText(text, left + 5, 9);
  }

  spoken() {
    const last = this.data.series.filter((s) => s.name && s.y.length)
      .map((s) => `${s.name}: ${short(s.y[s.y.length - 1])}`);
    return `${this.heading.textContent}. ${last.join(", ")}`;
  }
}
