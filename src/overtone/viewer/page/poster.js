// The fields, their colour bars and the curves on one canvas: what a saved picture shows.
import { colour, make } from "./words.js";
import { bar } from "./draw.js";
import { GAP, LETTERS } from "./panels.js";

const HEAD = 28;
const ABOVE = 20; // the room of a panel's title
const BAR = { height: 10, all: 44, widest: 330 };
const NARROW = 560;
const CHART = { heading: 18, height: 172, half: 66 };
const LEGEND = 24;

/** Write a text from its left end, on its middle line; no wider than `most`. */
function write(context, text, x, y, { size = 12, style = "ink", most, align = "left", weight = 400 } = {}) {
  context.font = `${weight} ${size}px system-ui, sans-serif`;
  context.textAlign = align;
  context.textBaseline = "middle";
  context.fillStyle = colour(style);
  context.fillText(text, x, y, most);
}

/** Fields with their titles, in the rows and columns of the page. */
function drawPanels(context, panels, list, { columns, width, height }, top) {
  list.forEach((entry, n) => {
    const x = GAP + (n % columns) * (width + GAP);
    const y = top + Math.floor(n / columns) * (height + ABOVE + GAP) + ABOVE;
    const owned = entry.lane !== undefined;
    write(context, (owned ? `${LETTERS[entry.lane]}  ` : "") + entry.title, x, y - ABOVE / 2,
      { style: owned ? "ab"[entry.lane] : "ink", most: width });
    if (entry.veil) write(context, entry.veil, x + width / 2, y + height / 2, { style: "soft", most: width, align: "center" });
    panels.draft(context, { x, y, width, height }, entry);
  });
}

/** Colour bars beside each other; `scales` are their palettes and the texts below them. */
function drawBars(context, scales, width, y) {
  const wide = Math.min(BAR.widest, (width - 3 * GAP) / 2), from = (width - 2 * wide - GAP) / 2;
  scales.forEach(({ palette, texts: [low, name, high] }, n) => {
    const x = from + n * (wide + GAP), strip = make("canvas");
    bar(strip, palette);
    context.drawImage(strip, x, y, wide, BAR.height);
    const below = y + BAR.height + 11, look = { size: 11, style: "soft" };
    write(context, low, x, below, look);
    write(context, name, x + wide / 2, below, { ...look, most: wide / 2, align: "center" });
    write(context, high, x + wide, below, { ...look, align: "right" });
  });
}

/** What the lines of the curves are. */
function drawLegend(context, entries, y) {
  let x = GAP;
  for (const { text, style, dash } of entries) {
    context.strokeStyle = colour(style);
    context.lineWidth = 2;
    context.setLineDash(dash);
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x + 22, y);
    context.stroke();
    context.setLineDash([]);
    write(context, text, x + 27, y, { size: 11, style: "soft" });
    x += 41 + context.measureText(text).width;
  }
}

/** Where each chart goes below a place, in columns that are filled from the shortest. */
function placed(charts, width, top) {
  const columns = width < NARROW ? 1 : 2, ends = Array(columns).fill(top);
  const wide = (width - (columns + 1) * GAP) / columns;
  const places = charts.map((chart) => {
    const column = ends.indexOf(Math.min(...ends)), y = ends[column];
    const height = chart.small ? CHART.half : CHART.height;
    ends[column] += CHART.heading + height + GAP;
    return { chart, x: GAP + column * (wide + GAP), y, width: wide, height };
  });
  return { places, bottom: Math.max(...ends) };
}

function drawChart(context, { chart, x, y, width, height }) {
  const [name, , note] = chart.heading.childNodes, middle = y + CHART.heading / 2;
  write(context, name.textContent, x, middle, { weight: 600 });
  const end = context.measureText(name.textContent).width + 6;
  write(context, note.textContent, x + end, middle, { style: "soft", most: width - end });
  context.save();
  context.translate(x, y + CHART.heading);
  chart.draft(context, width, height);
  context.restore();
}

/**
 * Everything on one canvas.
 *
 * `panels` and `curves` are the page's, `scales` as `drawBars` has them, and `scale` is how many
 * pixels of the picture are one of the page.
 */
export function poster({ panels, curves, scales, title, scale }) {
  const list = panels.list(), layout = panels.layout(list.length);
  const rows = list.length / layout.columns;
  const width = Math.max(layout.columns * (layout.width + GAP) + GAP, 320);
  const under = HEAD + rows * (layout.height + ABOVE + GAP), below = under + BAR.all;
  const { places, bottom } = placed(curves.all, width, below + LEGEND);
  const canvas = make("canvas", { width: Math.round(width * scale), height: Math.round(bottom * scale) });
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  context.fillStyle = colour("paper");
  context.fillRect(0, 0, width, bottom);
  write(context, title, GAP, HEAD / 2 + 4, { size: 13, most: width - 2 * GAP });
  drawPanels(context, panels, list, layout, HEAD);
  drawBars(context, scales, width, under);
  drawLegend(context, curves.lines, below + LEGEND / 2 - 4);
  for (const place of places) drawChart(context, place);
  return canvas;
}
