// What the page remembers: numbers of all steps, recent frames, what was done; and all of it as a link.

const FRAME_BYTES = 48e6;
const MAX_POINTS = 20000;
/** Changes that a link can hold. */
export const MAX_EVENTS = 60;

/** Numbers and frames by step. */
export class History {
  constructor() {
    this.clear();
  }

  clear() {
    this.points = new Map();
    this.frames = new Map();
    this.bytes = 0;
  }

  /** Frames that show another field are of no more use; the numbers are. */
  forgetFrames() {
    this.frames = new Map();
    this.bytes = 0;
  }

  add(frame) {
    for (const point of frame.points) this.points.set(point.step, point);
    for (const step of this.points.keys()) {
      if (this.points.size <= MAX_POINTS) break;
      this.points.delete(step);
    }
    this.drop(frame.step);
    this.frames.set(frame.step, frame);
    this.bytes += sizeOf(frame);
    for (const step of this.frames.keys()) {
      if (this.bytes <= FRAME_BYTES || this.frames.size < 3) break;
      this.drop(step);
    }
  }

  drop(step) {
    const frame = this.frames.get(step);
    if (frame) this.bytes -= sizeOf(frame);
    this.frames.delete(step);
  }

  /** Forget what came after a step. */
  cut(step) {
    for (const later of [...this.points.keys()].filter((s) => s > step)) this.points.delete(later);
    for (const later of [...this.frames.keys()].filter((s) => s > step)) this.drop(later);
  }

  /** Points in order of their steps, up to one. */
  upTo(step) {
    return [...this.points.values()].filter((p) => p.step <= step).sort((a, b) => a.step - b.step);
  }
}

function sizeOf(frame) {
  return frame.planes.reduce((bytes, plane) => bytes + plane.data.byteLength, 500);
}

/** What was done to the lanes, so that a link can do it again. */
export class Log {
  constructor() {
    this.events = [];
  }

  note(event) {
    this.events.push(event);
  }

  /** Whether there are more than a link can hold. */
  get lost() {
    return this.events.length > MAX_EVENTS;
  }

  /** After going back to a step, the schedules in force are what counts from there on. */
  cut(step, opened, current) {
    this.events = this.events.filter((event) => event.step <= step);
    current.forEach((schedule, lane) => {
      const own = this.events.filter((event) => event.lane === lane && event.schedule);
      const before = own.length ? own[own.length - 1].schedule : opened[lane].schedule;
      if (before !== schedule) this.note({ step, lane, schedule });
    });
  }
}

/** A state as the fragment of an address. */
export function toFragment(state) {
  const query = new URLSearchParams({ d: state.trajectory, s: state.start, n: state.step });
  query.set("f", state.view.field);
  query.set("v", [state.view.mode, state.view.across, state.view.index, state.view.along].join("."));
  query.set("a", `${state.lanes[0].model}.${state.lanes[0].schedule}`);
  if (state.lanes[1]) query.set("b", `${state.lanes[1].model}.${state.lanes[1].schedule}`);
  query.set("o", `${Number(state.estimate)}.${Number(state.grid)}`);
  if (state.events.length) query.set("e", JSON.stringify(state.events.slice(0, MAX_EVENTS)));
  return `#${query}`;
}

/** The state of a fragment; null if it has none that can be read. */
export function fromFragment(fragment) {
  const query = new URLSearchParams(fragment.replace(/^#/, ""));
  if (!query.has("a")) return null;
  const whole = (text, most) => {
    const number = Number(text);
    return Number.isInteger(number) && number >= 0 && number <= most ? number : 0;
  };
  const track = (text) => {
    const place = text.indexOf(".");
    return { model: whole(text.slice(0, place), 1e6), schedule: text.slice(place + 1, place + 401) };
  };
  const [mode, across, index, along] = (query.get("v") ?? "").split(".");
  const view = { field: whole(query.get("f"), 1e6), mode: mode === "mean" ? "mean" : "slice",
    across: whole(across, 2), index: whole(index, 1e6), along: whole(along, 2) };
  const [estimate, grid] = (query.get("o") ?? "1.1").split(".").map((text) => text === "1");
  const lanes = [query.get("a"), query.get("b")].filter((text) => text).map(track);
  let events = [];
  try {
    const given = JSON.parse(query.get("e") ?? "[]");
    events = Array.isArray(given) ? given.slice(0, MAX_EVENTS) : [];
  } catch { /* an address that was cut short: the rest of it still counts */ }
  return { trajectory: whole(query.get("d"), 1e6), start: whole(query.get("s"), 1e6),
    step: whole(query.get("n"), 5000), view, lanes, events, estimate, grid };
}
