// The page: its state, its controls, and what happens when they are used.
import { byId, bytesOf, colour, KEYS, make, MEASURES, parted, short } from "./words.js";
import { bar } from "./draw.js";
import { Chart } from "./charts.js";
import { gif, indexed, sharedPalette } from "./gif.js";
import { Live, Recorded } from "./source.js";
import { fromFragment, History, Log, toFragment } from "./store.js";
import { Panels } from "./panels.js";

const AXES = ["x", "y", "z"];
const MAX_GIF = 120;
const given = byId("recording");

class App {
  constructor() {
    Object.assign(this, { shown: 0, head: 0, playing: false, busy: false, frame: null, opened: null,
      rendered: [], last: 0, ended: false });
    this.history = new History();
    this.log = new Log();
    this.source = given ? new Recorded(JSON.parse(given.textContent))
      : new Live(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/watch${location.search}`,
        (text) => { this.pause(); this.say(text, true); });
    this.panels = new Panels(byId("panels"), { onPaint: (lane, cell) => this.push(lane, cell) });
    this.chain = Promise.resolve();
    this.makeCharts();
  }

  async begin() {
    this.hello = await this.source.hello;
    const { hello } = this, { settings } = hello;
    document.body.classList.toggle("recorded", this.source.recorded);
    const palettes = { field: bytesOf(hello.palettes.field), signed: bytesOf(hello.palettes.signed) };
    this.panels.palettes = palettes;
    bar(byId("bar-field"), palettes.field);
    bar(byId("bar-residual"), palettes.signed);
    const size = hello.shape.join(" × ");
    byId("subject").textContent = `${hello.data.name} · ${size} cells${this.source.recorded ? " · a recording" : ""}`;
    this.view = { field: settings.field ?? 0, mode: "slice", across: 2, along: 0,
      index: hello.shape.length === 3 ? hello.shape[2] >> 1 : 0 };
    this.wire();
    const state = fromFragment(location.hash);
    try {
      if (state) await this.restore(state);
      else await this.open({ trajectory: settings.trajectory ?? 0, start: hello.data.start, lanes: settings.lanes });
    } catch (error) {
      this.say(`${error.message}. Showing the start instead.`, true);
      await this.open({ trajectory: 0, start: hello.data.start, lanes: settings.lanes });
    }
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (!state && !still && settings.play !== false) this.play();
    requestAnimationFrame((now) => this.tick(now));
    document.body.dataset.ready = "true";
  }

  /** One question after the other; errors are shown and thrown on. */
  ask(message) {
    const answer = this.chain.then(() => this.source.ask(message));
    this.chain = answer.catch(() => {});
    return answer;
  }

  async open({ trajectory, start, lanes }) {
    const message = { type: "open", trajectory, start, lanes, view: this.view, estimate: byId("estimate").checked };
    const frame = await this.ask(message);
    this.opened = { trajectory, start, lanes: lanes.map((lane) => ({ ...lane })) };
    this.history.clear();
    this.log = new Log();
    this.panels.limit = 0;
    this.ended = false;
    this.lanes = frame.lanes;
    this.accept(frame);
    this.makeLanes();
    this.syncControls();
    this.say("");
  }

  /** Take an answer as the newest step and show it. */
  accept(frame) {
    this.history.add(frame);
    this.head = frame.head;
    this.oldest = frame.oldest;
    this.display(frame);
  }

  display(frame) {
    this.frame = frame;
    this.lanes = frame.lanes;
    this.shown = frame.step;
    this.panels.show(frame, frame.lanes.map((lane) => this.hello.models[lane.model].name));
    this.drawCharts();
    this.numbers();
    const { domain, scale } = frame, limit = this.panels.limit;
    byId("ends-field").replaceChildren(...[short(scale.low), `${this.hello.fields[frame.view.field]}${scale.log ? ", logarithmic" : ""}`, short(scale.high)].map((t) => make("span", {}, t)));
    byId("ends-residual").replaceChildren(...[short(-limit), "prediction − truth", short(limit)].map((t) => make("span", {}, t)));
    const scrub = byId("scrub");
    scrub.min = this.oldest;
    scrub.max = Math.max(this.head, 1);
    scrub.value = this.shown;
    byId("clock").innerHTML = "";
    byId("clock").append("step ", make("b", {}, String(frame.step)), ` · t = ${short(frame.step * domain.dt)}`);
    const now = performance.now();
    this.rendered = [...this.rendered.filter((t) => now - t < 2000), now];
    if (!frame.truth && !this.ended && frame.step > 0) {
      this.ended = true;
      const { frames, context } = this.hello.data;
      this.say(`The data ends at step ${frames[frame.trajectory] - frame.start - context}. The model goes on without truth: nothing below is compared from here on.`);
    }
    const stopped = frame.lanes.map((lane) => lane.stopped).filter(Boolean);
    if (stopped.length) this.say(stopped[0], true);
  }

  // -- going on, going back ---------------------------------------------------------------------

  async forward(count = 1) {
    if (this.shown < this.head) return this.goTo(this.shown + 1);
    if (this.source.recorded) return this.pause();
    const frame = await this.ask({ type: "step", count });
    this.accept(frame);
    if (frame.lanes.every((lane) => lane.stopped)) this.pause();
  }

  async goTo(step) {
    const wanted = Math.min(Math.max(step, this.oldest), this.head);
    const known = this.history.frames.get(wanted);
    if (known) return this.display(known);
    const frame = await this.ask({ type: "show", step: wanted });
    this.history.add(frame);
    this.display(frame);
  }

  /** What is changed is changed at the step that is seen: later ones are forgotten. */
  async cut() {
    if (this.shown === this.head || this.source.recorded) return;
    const frame = await this.ask({ type: "back", step: this.shown });
    this.history.cut(this.shown);
    this.log.cut(this.shown, this.opened.lanes, frame.lanes.map((lane) => lane.schedule));
    this.accept(frame);
  }

  async steer(lane, schedule) {
    const { recorded } = this.source;
    if (recorded) return;
    await this.guard(async () => {
      await this.cut();
      const frame = await this.ask({ type: "steer", lane, schedule });
      this.log.note({ step: frame.step, lane, schedule });
      this.accept(frame);
      this.syncLanes();
    }, lane);
  }

  async push(lane, cell) {
    if (this.pushing || this.source.recorded) return;
    this.pushing = true;
    await this.guard(async () => {
      await this.cut();
      const push = { field: this.view.field, cell, radius: Number(byId("radius").value),
        strength: Number(byId("strength").value) };
      const frame = await this.ask({ type: "push", lane, ...push });
      this.log.note({ step: frame.step, lane, push });
      this.accept(frame);
      this.say(`The field of lane ${"AB"[lane]} was changed by hand; "−truth" is still the difference from the unchanged data.`);
    });
    this.pushing = false;
  }

  async look(change) {
    this.view = { ...this.view, ...change };
    const wanted = this.shown;
    await this.guard(async () => {
      const frame = await this.ask({ type: "look", view: this.view });
      this.history.forgetFrames();
      this.panels.limit = 0;
      this.history.add(frame);
      this.head = frame.head;
      if (frame.step === wanted) this.display(frame);
      else await this.goTo(wanted);
      this.syncControls();
    });
  }

  async restore(state) {
    this.view = state.view;
    await this.open({ trajectory: state.trajectory, start: state.start, lanes: state.lanes });
    const until = async (step) => {
      while (this.shown < step) {
        const before = this.shown;
        this.say(`Going to step ${state.step} …`);
        await this.forward(Math.min(20, step - this.shown));
        if (this.shown === before) break;
      }
    };
    for (const event of this.source.recorded ? [] : state.events) {
      await until(Math.min(event.step, state.step));
      if (event.schedule) await this.steer(event.lane, event.schedule);
      else if (event.push) {
        const frame = await this.ask({ type: "push", lane: event.lane, ...event.push });
        this.log.note(event);
        this.accept(frame);
      }
    }
    if (this.source.recorded) await this.goTo(state.step);
    else await until(state.step);
    this.say("");
  }

  play() {
    this.playing = true;
    byId("play").textContent = "Pause";
  }

  pause() {
    this.playing = false;
    byId("play").textContent = "Play";
  }

  async toggle() {
    if (this.playing) return this.pause();
    if (this.source.recorded && this.shown === this.head) await this.goTo(0);
    this.play();
  }

  tick(now) {
    requestAnimationFrame((later) => this.tick(later));
    const wait = 1000 / Number(byId("speed").value);
    if (!this.playing || this.busy || now - this.last < wait - 4) return;
    this.last = now;
    this.busy = true;
    this.forward().catch((error) => { this.pause(); this.say(error.message, true); })
      .finally(() => { this.busy = false; });
  }

  /** Do something; what goes wrong is said, at its lane or below the fields. */
  async guard(action, lane) {
    try {
      this.wrong(lane, "");
      await action();
    } catch (error) {
      if (lane === undefined) this.say(error.message, true);
      else this.wrong(lane, error.message);
    }
  }

  say(text, warn = false) {
    byId("status").textContent = text;
    byId("status").classList.toggle("warn", warn);
  }

  wrong(lane, text) {
    const place = this.cards?.[lane]?.wrong;
    if (place) place.textContent = text;
  }

  // -- lanes --------------------------------------------------------------------------------------

  makeLanes() {
    this.cards = this.lanes.map((_, lane) => (this.source.recorded ? this.recordedCard(lane) : this.liveCard(lane)));
    byId("lanes").replaceChildren(...this.cards.map((card) => card.element));
    byId("compare").textContent = this.lanes.length === 2 ? "One lane" : "Compare two";
    this.legend.replaceChildren(...this.legendEntries());
    this.syncLanes();
    this.numbers();
  }

  legendEntries() {
    const entry = (kind, text, title = "") => make("span", { title }, make("b", { className: kind }), text);
    return [entry("la", "A"), ...(this.lanes.length === 2 ? [entry("lb", "B")] : []),
      entry("ls", "persistence", MEASURES.persistence),
      ...(byId("estimate").checked ? [entry("le", "expected error, with its band", MEASURES.estimate)] : [])];
  }

  frameCard(lane, ...content) {
    const values = {}, list = make("dl");
    for (const [name, title] of [["error", "VRMSE"], ["seams", "seams"], ["tokens", "tokens"], ["ms", "ms"]]) {
      values[name] = make("dd", {}, "–");
      list.append(make("div", { title: MEASURES[name] }, make("dt", {}, title), values[name]));
    }
    const wrong = make("div", { className: "wrong", role: "alert" });
    const element = make("fieldset", { className: "lane" },
      make("legend", {}, make("span", { className: `chip ${"ab"[lane]}` }, "AB"[lane]), "lane"),
      ...content, list, wrong);
    return { element, values, wrong };
  }

  recordedCard(lane) {
    const choose = make("select", { title: "One of the recorded rollouts" });
    this.hello.recording.rollouts.forEach(({ model, schedule }, n) => {
      choose.append(make("option", { value: n }, `${this.hello.models[model].name} · ${schedule}`));
    });
    choose.onchange = () => this.reopen(lane, this.hello.recording.rollouts[choose.value]);
    return { ...this.frameCard(lane, choose), choose };
  }

  liveCard(lane) {
    const { models } = this.hello, own = models[this.lanes[lane].model];
    const model = make("select", { title: "The model of this lane; another one starts again" });
    models.forEach(({ name, parameters }, n) => {
      model.append(make("option", { value: n, title: `${short(parameters / 1e6, 2)} M parameters` }, name));
    });
    model.value = this.lanes[lane].model;
    model.onchange = () => {
      const other = models[model.value];
      const schedule = other.schedules[other.schedules.length - 1] ?? other.patches[0] ?? "1";
      this.reopen(lane, { model: Number(model.value), schedule });
    };
    const buttons = make("div", { className: "buttons" });
    const patches = own.patches.map((patch) => {
      const button = make("button", { title: `Patch ${patch} at every step from the next one on` }, patch);
      button.onclick = () => this.choose(lane, patch);
      return { patch, button };
    });
    const cycle = own.schedules.find((schedule) => !schedule.includes("+"));
    if (cycle) {
      const button = make("button", { title: "The patches in turn" }, cycle);
      button.onclick = () => this.choose(lane, cycle);
      patches.push({ patch: cycle, button });
    }
    const others = own.adaptive ? [["adaptive", "adaptive:0.02", "The coarsest patch whose own estimate of a step's error stays below 0.02"]] : [];
    const { plan } = this.hello.settings;
    if (plan && this.lanes[lane].model === 0) others.push(["plan", plan, "What `overtone plan` has chosen"]);
    for (const [name, schedule, title] of others) {
      const button = make("button", { title }, name);
      button.onclick = () => this.steer(lane, schedule);
      patches.push({ patch: schedule, button });
    }
    const shift = make("button", { title: "Move the patch grid at every step, so that its seams do not add up (S)" }, "shift");
    shift.onclick = () => this.toggleShift(lane);
    buttons.append(...patches.map((entry) => entry.button), shift);
    const text = make("input", { type: "text", spellcheck: false, maxLength: 400,
      title: "Any schedule, such as 16, 4-8-16+shift, bursts:16:4:5 or warmup:4-4-8:16; Enter follows it" });
    text.setAttribute("aria-label", `Schedule of lane ${"AB"[lane]}`);
    text.onkeydown = (event) => { if (event.key === "Enter") this.steer(lane, text.value.trim()); };
    const content = own.patched ? [model, buttons, text] : [model, make("div", {}, "This model has no patches.")];
    return { ...this.frameCard(lane, ...content), patches, shift, text };
  }

  /** A patch or a cycle, with the shift that the lane has. */
  choose(lane, schedule) {
    const [, shifted] = parted(this.lanes[lane].schedule);
    this.steer(lane, schedule + (shifted ? "+shift" : ""));
  }

  toggleShift(lane) {
    const [base, shifted] = parted(this.lanes[lane].schedule);
    if (this.cards[lane]?.shift) this.steer(lane, shifted ? base : `${base}+shift`);
  }

  syncLanes() {
    this.lanes.forEach(({ schedule, model }, lane) => {
      const card = this.cards[lane], [base, shifted] = parted(schedule);
      if (card.choose) {
        card.choose.value = this.hello.recording.rollouts.findIndex((r) => r.model === model && r.schedule === schedule);
        return;
      }
      for (const { patch, button } of card.patches) button.setAttribute("aria-pressed", String(patch === base));
      card.shift.setAttribute("aria-pressed", String(shifted));
      if (document.activeElement !== card.text) card.text.value = schedule;
    });
  }

  async reopen(lane, track) {
    const lanes = this.lanes.map(({ model, schedule }) => ({ model, schedule }));
    if (track) lanes[lane] = { model: track.model, schedule: track.schedule };
    const step = this.shown;
    await this.guard(async () => {
      await this.open({ ...this.opened, lanes });
      if (this.source.recorded) await this.goTo(step);
    }, lane);
  }

  async compare() {
    const lanes = this.lanes.map(({ model, schedule }) => ({ model, schedule }));
    const { models, recording } = this.hello;
    if (lanes.length === 2) lanes.pop();
    else if (recording) {
      const other = recording.rollouts.find((r) => r.schedule !== lanes[0].schedule) ?? recording.rollouts[0];
      lanes.push({ model: other.model, schedule: other.schedule });
    } else {
      const model = (lanes[0].model + 1) % models.length;
      const own = models[model];
      lanes.push({ model, schedule: own.schedules[own.schedules.length - 1] ?? own.patches[0] ?? lanes[0].schedule });
    }
    const step = this.shown;
    await this.guard(async () => {
      await this.open({ ...this.opened, lanes });
      if (this.source.recorded) await this.goTo(step);
    });
  }

  numbers() {
    const point = this.history.points.get(this.shown);
    this.cards?.forEach(({ values }, lane) => {
      const own = point?.lanes[lane] ?? {};
      const told = { error: short(own.error), seams: own.seams == null ? "–" : `${short(own.seams, 2)} dB`,
        tokens: own.tokens == null ? "–" : String(own.tokens), ms: short(own.ms, 2) };
      for (const [name, text] of Object.entries(told)) values[name].textContent = text;
    });
  }

  // -- curves -------------------------------------------------------------------------------------

  makeCharts() {
    this.legend = make("div", { className: "legend" });
    this.charts = {
      error: new Chart("Error", MEASURES.error, { yLog: true, note: "VRMSE, mean of fields" }),
      seams: new Chart("Seams", MEASURES.seams, { note: "dB at the grid in use", unit: " dB", floor: 0, ceiling: 3 }),
      spectrum: new Chart("Residual spectrum", MEASURES.spectrum, { yLog: true, xLabel: "cycles per cell", note: "" }),
      tokens: new Chart("Tokens", MEASURES.tokens, { small: true, note: "a step", floor: 0 }),
      ms: new Chart("Milliseconds", MEASURES.ms, { small: true, note: "a step, the model alone", floor: 0 }),
    };
    const { error, seams, spectrum, tokens, ms } = this.charts;
    byId("charts").append(this.legend, error.element, seams.element, spectrum.element,
      make("div", { className: "pair" }, tokens.element, ms.element));
    new ResizeObserver(() => this.drawCharts()).observe(byId("charts"));
  }

  drawCharts() {
    if (!this.frame) return;
    const points = this.history.upTo(this.head), steps = points.map((p) => p.step);
    const looks = [{ colour: colour("a"), name: "A" }, { colour: colour("b"), dash: [6, 4], name: "B" }];
    const now = [{ x: this.shown, colour: colour("soft"), width: 1, alpha: 0.7 }];
    const xRange = [0, Math.max(10, this.head)];
    const lane = (n, name, more = {}) => ({ x: steps, y: points.map((p) => p.lanes[n]?.[name] ?? null), ...looks[n], ...more });
    const each = (name, more) => this.lanes.map((_, n) => lane(n, name, more));
    const still = { x: steps, y: points.map((p) => p.persistence), colour: colour("still"), dash: [1, 3], width: 1.5,
      name: "persistence", quiet: true };
    const bands = this.lanes.map((_, n) => this.band(points, steps, n, looks[n])).filter(Boolean);
    this.charts.error.show({ series: [still, ...bands, ...each("error")], marks: now, current: this.shown, xRange });
    this.charts.seams.show({ series: each("seams"), marks: now, current: this.shown, xRange });
    this.charts.tokens.show({ series: each("tokens", { width: 1.5 }), marks: now, current: this.shown, xRange });
    this.charts.ms.show({ series: each("ms", { width: 1.5 }), marks: now, current: this.shown, xRange });
    this.drawSpectrum(looks);
  }

  /** What a lane expects its error to be, with its band; null if nobody asked. */
  band(points, steps, lane, look) {
    const known = points.map((p) => p.lanes[lane]?.estimate ?? null);
    if (!known.some(Boolean)) return null;
    const part = (n) => known.map((estimate) => estimate?.[n] ?? null);
    return { x: steps, y: part(0), low: part(1), high: part(2), colour: look.colour, dash: [2, 3], width: 1.2,
      name: `${look.name} expects` };
  }

  drawSpectrum(looks) {
    const { domain, view, lanes } = this.frame, n = domain.shape[view.along];
    const marks = [], point = this.history.points.get(this.shown);
    lanes.forEach((_, lane) => {
      const patch = point?.lanes[lane]?.patch?.[view.along];
      for (let j = 1; patch > 1 && j <= patch / 2; j++) marks.push({ x: j / patch, colour: looks[lane].colour, dash: looks[lane].dash ?? [], alpha: 0.35 });
    });
    const series = lanes.map(({ spectrum }, lane) => ({ ...looks[lane], width: 1.6,
      x: (spectrum ?? []).map((_, k) => k / n).slice(1), y: (spectrum ?? []).slice(1) }));
    this.charts.spectrum.heading.lastChild.textContent =
      `${this.hello.fields[view.field]} along ${AXES[view.along]}`;
    this.charts.spectrum.show({ series, marks, xRange: [0, 0.5] });
  }

  // -- what is saved ------------------------------------------------------------------------------

  title(frame = this.frame) {
    return `${this.hello.data.name}: ${this.hello.fields[frame.view.field]}, step ${frame.step}`;
  }

  async png() {
    const canvas = this.panels.compose(this.title(), 2);
    save(await new Promise((resolve) => canvas.toBlob(resolve, "image/png")), "overtone-view.png");
  }

  async gif() {
    const before = this.shown, running = this.playing;
    this.pause();
    const first = Math.max(this.oldest, this.head - MAX_GIF + 1);
    const style = ["a", "b", "ink", "soft", "paper"].map((name) => rgb(colour(name)));
    const palette = sharedPalette([this.panels.palettes.field, this.panels.palettes.signed], style);
    const frames = [], known = new Map();
    let size = [0, 0];
    for (let step = first; step <= this.head; step++) {
      this.say(`GIF: step ${step} of ${this.head} …`);
      await this.goTo(step);
      const canvas = this.panels.compose(this.title(), 1);
      size = [canvas.width, canvas.height];
      frames.push(indexed(canvas.getContext("2d").getImageData(0, 0, ...size).data, palette, known));
      if (step % 4 === 0) await new Promise((resolve) => setTimeout(resolve));
    }
    save(gif(frames, ...size, palette, 10), "overtone-view.gif");
    this.say(`Saved ${frames.length} steps as overtone-view.gif.`);
    await this.goTo(before);
    if (running) this.play();
  }

  state() {
    return { ...this.opened, step: this.shown, view: this.view,
      events: this.log.events.filter((event) => event.step <= this.shown) };
  }

  async link() {
    const fragment = toFragment(this.state());
    history.replaceState(null, "", fragment);
    const address = location.href.replace(location.search, "");
    try {
      await navigator.clipboard.writeText(address);
      this.say("The link to this state is in the clipboard, and in the address.");
    } catch {
      this.say("The link to this state is in the address.");
    }
  }

  // -- controls -----------------------------------------------------------------------------------

  syncControls() {
    const { view, hello } = this, ndim = hello.shape.length;
    byId("field").value = view.field;
    byId("cut").hidden = ndim < 2;
    byId("cut").style.display = ndim < 2 ? "none" : "";
    byId("mode").value = ndim === 3 ? `${view.mode}.${view.across}` : `along.${view.along}`;
    const index = byId("index");
    const slider = ndim === 3 && view.mode === "slice" && !this.source.recorded;
    index.style.display = slider ? "" : "none";
    if (ndim === 3) {
      index.max = hello.shape[view.across] - 1;
      index.value = view.index;
    }
    byId("place").textContent = slider ? `${AXES[view.across]} ${view.index}` : "";
    const { trajectory, start } = this.opened;
    Object.assign(byId("trajectory"), { max: hello.data.frames.length - 1, value: trajectory });
    Object.assign(byId("start"), { max: hello.data.frames[trajectory] - hello.data.context, value: start });
  }

  wire() {
    const { hello } = this, ndim = hello.shape.length;
    hello.fields.forEach((name, n) => byId("field").append(make("option", { value: n }, name)));
    const mode = byId("mode");
    if (ndim === 3) {
      for (const axis of [2, 1, 0]) mode.append(make("option", { value: `slice.${axis}` }, `across ${AXES[axis]}`));
      if (!this.source.recorded) {
        for (const axis of [2, 1, 0]) mode.append(make("option", { value: `mean.${axis}` }, `mean along ${AXES[axis]}`));
      }
    } else {
      mode.parentElement.firstChild.textContent = "spectrum ";
      mode.parentElement.title = "The axis along which the spectrum is taken";
      for (let axis = 0; axis < ndim; axis++) mode.append(make("option", { value: `along.${axis}` }, `along ${AXES[axis]}`));
    }
    mode.onchange = () => {
      const [kind, axis] = mode.value.split(".");
      if (kind === "along") this.look({ along: Number(axis) });
      else this.look({ mode: kind, across: Number(axis), index: hello.shape[axis] >> 1, along: Number(axis) === 0 ? 1 : 0 });
    };
    byId("index").oninput = () => this.look({ index: Number(byId("index").value) });
    byId("field").onchange = () => this.look({ field: Number(byId("field").value) });
    byId("play").onclick = () => this.toggle();
    byId("next").onclick = () => { this.pause(); this.guard(() => this.forward()); };
    byId("prev").onclick = () => { this.pause(); this.guard(() => this.goTo(this.shown - 1)); };
    byId("reset").onclick = () => this.reset();
    byId("scrub").oninput = () => { this.pause(); this.guard(() => this.goTo(Number(byId("scrub").value))); };
    byId("compare").onclick = () => this.compare();
    byId("grid").onchange = () => { this.panels.grid = byId("grid").checked; this.panels.draw(); };
    byId("paint").onchange = () => { this.panels.brush = byId("paint").checked; this.panels.draw(); };
    byId("estimate").checked = hello.models.some((model) => model.calibrated);
    byId("estimate").parentElement.classList.add("live");
    byId("estimate").onchange = () => this.guard(() => this.restore(this.state()));
    for (const id of ["trajectory", "start"]) byId(id).onchange = () => this.restart();
    for (const id of ["brush", "origin"]) byId(id).classList.add("live");
    byId("png").onclick = () => this.guard(() => this.png());
    byId("gif").onclick = () => this.guard(() => this.gif());
    byId("link").onclick = () => this.link();
    byId("theme").onclick = () => this.theme();
    byId("help").onclick = () => this.about();
    document.addEventListener("keydown", (event) => this.key(event));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.drawCharts());
  }

  async reset() {
    if (this.source.recorded) return this.goTo(0);
    const lanes = this.lanes.map(({ model, schedule }) => ({ model, schedule }));
    await this.guard(() => this.open({ ...this.opened, lanes }));
  }

  async restart() {
    const lanes = this.lanes.map(({ model, schedule }) => ({ model, schedule }));
    const [trajectory, start] = ["trajectory", "start"].map((id) => Math.max(0, Math.round(Number(byId(id).value))));
    await this.guard(() => this.open({ trajectory, start, lanes }));
  }

  theme() {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    this.drawCharts();
  }

  about() {
    const rows = (pairs, wrap) => make("dl", {}, ...pairs.flatMap(([key, text]) => [make("dt", {}, wrap(key)), make("dd", {}, text)]));
    const names = { error: "VRMSE", persistence: "persistence", seams: "seams", spectrum: "spectrum", tokens: "tokens", ms: "ms", estimate: "estimate" };
    const close = make("button", {}, "Close");
    close.onclick = () => byId("about").close();
    byId("about").replaceChildren(make("h2", {}, "Keys"), rows(KEYS, (key) => make("kbd", {}, key)),
      make("h2", {}, "Measures"), rows(Object.entries(names).map(([key, name]) => [name, MEASURES[key]]), (key) => key),
      make("h2", {}, "Time"), make("p", {}, "Steps that were made can be looked at again with the slider. What you change, a schedule or the field itself, is changed at the step that you see; what came after it is made anew."),
      close);
    byId("about").showModal();
  }

  key(event) {
    const tag = event.target.tagName;
    if (tag === "SELECT" || (tag === "INPUT" && event.target.type !== "checkbox" && event.target.type !== "range")) return;
    if (event.ctrlKey || event.metaKey || byId("about").open) return;
    const lane = event.altKey && this.lanes.length > 1 ? 1 : 0;
    const digit = event.code.startsWith("Digit") ? Number(event.code.slice(5)) : 0;
    const patch = this.cards[lane]?.patches?.[digit - 1]?.patch;
    const act = {
      " ": () => this.toggle(), ArrowRight: () => byId("next").click(), ArrowLeft: () => byId("prev").click(),
      Home: () => this.reset(), c: () => this.compare(), g: () => byId("grid").click(), b: () => byId("paint").click(),
      f: () => this.look({ field: (this.view.field + 1) % this.hello.fields.length }), t: () => this.theme(),
      "?": () => this.about(),
    }[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (patch) this.choose(lane, patch);
    else if (event.code === "KeyS") this.toggleShift(lane);
    else if (act) act();
    else return;
    event.preventDefault();
  }
}

/** Offer a file for saving. */
function save(blob, name) {
  const address = URL.createObjectURL(blob);
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

/** Red, green and blue of #rrggbb. */
function rgb(text) {
  return [1, 3, 5].map((place) => parseInt(text.slice(place, place + 2), 16));
}

const app = new App();
window.overtone = app; // for whoever wants to look inside from the browser's console
app.begin();
