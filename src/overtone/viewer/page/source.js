// Where frames come from: a model that runs behind a websocket, or a recording within this file.
import { bytesOf } from "./words.js";

const KINDS = { 8: Uint8Array, 16: Uint16Array, 32: Float32Array };

/** Header and planes of an answer; the server's module messages.py has the format. */
export function unpacked(buffer) {
  const size = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
  let place = 4 + size;
  const planes = header.planes.map((about) => {
    const kind = KINDS[about.bits];
    const count = about.shape.reduce((n, m) => n * m, 1);
    const bytes = count * kind.BYTES_PER_ELEMENT;
    const data = new kind(buffer.slice(place, place + bytes));
    place += bytes;
    return { ...about, data };
  });
  return { ...header, planes };
}

/** A server: messages are answered in order. */
export class Live {
  constructor(address, lost) {
    this.recorded = false;
    this.waiting = [];
    this.number = 0;
    this.socket = new WebSocket(address);
    this.socket.binaryType = "arraybuffer";
    this.hello = new Promise((resolve) => { this.greet = resolve; });
    this.socket.onmessage = (event) => {
      const answer = unpacked(event.data);
      if (answer.type === "hello") this.greet(answer);
      else {
        const { resolve, reject } = this.waiting.shift();
        if (answer.type === "error") reject(new Error(answer.message));
        else resolve(answer);
      }
    };
    this.socket.onclose = (event) => {
      const full = event.code === 1013;
      lost(full ? "Too many pages watch this server at once. Close one and load this page again."
        : "The server has ended. Start `overtone view` again and load this page again.");
      for (const { reject } of this.waiting) reject(new Error("the server has ended"));
      this.waiting = [];
    };
  }

  ask(message) {
    return new Promise((resolve, reject) => {
      if (this.socket.readyState !== WebSocket.OPEN) {
        reject(new Error("the server has ended"));
        return;
      }
      this.waiting.push({ resolve, reject });
      this.number = (this.number + 1) % 1e6;
      this.socket.send(JSON.stringify({ ...message, id: this.number }));
    });
  }
}

/** A recording: the same questions, as far as it can answer them. */
export class Recorded {
  constructor(recording) {
    this.recorded = true;
    this.recording = recording;
    this.hello = this.load();
  }

  async load() {
    const packed = new Blob([bytesOf(this.recording.planes)]);
    const stream = packed.stream().pipeThrough(new DecompressionStream("gzip"));
    this.bytes = await new Response(stream).arrayBuffer();
    this.index();
    return { ...this.recording.hello, recording: this.recording };
  }

  /** Where every plane begins: first the truth, then rollout after rollout. */
  index() {
    const { shapes, steps, scales, rollouts, lows, highs } = this.recording;
    this.places = new Map();
    let offset = 0, number = 0;
    const lay = (key, count, bits, cells) => {
      for (let step = 0; step < count; step++) {
        this.places.set(`${key}/${step}`, { offset, bits, low: lows[number], high: highs[number] });
        offset += (cells * bits) / 8;
        number += 1;
      }
    };
    const each = (name, count, bits) => shapes.forEach((shape, view) => scales.forEach((_, field) => {
      lay(`${name}/${view}/${field}`, count, bits, shape.reduce((n, m) => n * m, 1));
    }));
    each("truth", steps + 1, 16);
    rollouts.forEach((rollout, n) => each(`rollout${n}`, rollout.points.length, 8));
  }

  plane(name, view, field, step, about) {
    const found = this.places.get(`${name}/${view}/${field}/${step}`);
    const shape = this.recording.shapes[view];
    const kind = KINDS[found.bits];
    const data = new kind(this.bytes.slice(found.offset, found.offset + shape.reduce((n, m) => n * m, 1) * kind.BYTES_PER_ELEMENT));
    return { ...about, shape, bits: found.bits, low: found.low, high: found.high, data };
  }

  async ask(message) {
    const { recording } = this;
    if (message.type === "open") {
      this.chosen = message.lanes.map(({ model, schedule }) => Math.max(0, recording.rollouts.findIndex(
        (rollout) => rollout.model === model && rollout.schedule === schedule)));
      this.view = message.view;
      this.step = 0;
    } else if (message.type === "step") this.step = Math.min(this.step + 1, recording.steps);
    else if (message.type === "look") this.view = message.view;
    return this.frame(message.type === "show" ? message.step : this.step);
  }

  frame(step) {
    const { recording, chosen, view } = this;
    const place = Math.max(0, recording.views.findIndex(
      (own) => own.across === view.across));
    const rollouts = chosen.map((number) => recording.rollouts[number]);
    const last = rollouts.map((rollout) => Math.min(step, rollout.points.length - 1));
    const point = (n) => (last[n] === step ? rollouts[n].points[step] : {});
    return {
      type: "frame", step, head: recording.steps, oldest: 0, trajectory: recording.trajectory,
      start: recording.start, truth: true, view: { ...recording.views[place], field: view.field, along: view.along },
      scale: recording.scales[view.field], domain: recording.domain,
      points: this.points(rollouts, step),
      lanes: rollouts.map((rollout, n) => ({ model: rollout.model, schedule: rollout.schedule,
        step: last[n], stopped: last[n] < step ? rollout.stopped : "", pushed: false,
        spectrum: point(n).spectra?.[view.field]?.[view.along] ?? null })),
      planes: recording.domain.shape.length === 1 ? this.trace(step, last) : [
        this.plane("truth", place, view.field, step, { kind: "truth" }),
        ...chosen.map((number, n) => this.plane(`rollout${number}`, place, view.field, last[n],
          { kind: "residual", lane: n }))],
    };
  }

  points(rollouts, until) {
    const found = [];
    for (let step = 0; step <= until; step++) {
      const lanes = rollouts.map((rollout) => rollout.points[step] ?? {});
      found.push({ step, truth: true, persistence: this.recording.persistence[step], lanes });
    }
    return found;
  }

  /** Of one axis, truth and predictions of all steps so far, as float32. */
  trace(step, last) {
    const cells = this.recording.shapes[0][0], field = this.view.field;
    const rows = (row) => {
      const data = new Float32Array(cells * (step + 1));
      for (let s = 0; s <= step; s++) data.set(row(s), s * cells);
      return data;
    };
    const values = (name, s) => {
      const { data, low, high, bits } = this.plane(name, 0, field, s, {});
      return Array.from(data, (whole) => low + (whole / (2 ** bits - 1)) * (high - low));
    };
    const shape = [step + 1, cells];
    const truth = rows((s) => values("truth", s));
    return [{ kind: "truth", shape, bits: 32, data: truth }, ...this.chosen.map((number, n) => ({
      kind: "prediction", lane: n, shape, bits: 32, data: rows((s) => {
        const known = Math.min(s, last[n]);
        return values(`rollout${number}`, known).map((r, i) => r + truth[s * cells + i]);
      }) }))];
  }
}
