// The page: its state, its controls, and what happens when they are used.
import { byId, bytesOf, make, short } from "./words.js";
import { bar } from "./draw.js";
import { Film, png, save } from "./pictures.js";
import { Live, Recorded } from "./source.js";
import { fromFragment, History, Log, MAX_EVENTS, toFragment } from "./store.js";
import { Panels } from "./panels.js";
import { AXES, Curves } from "./curves.js";
import { poster } from "./poster.js";
import { Lanes, usual } from "./lanes.js";
import { showHelp } from "./help.js";
import { listen } from "./keys.js";

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
    this.panels = new Panels(byId("panels"), { onPaint: (lane, cell) => this.push(lane, cell),
      onRead: (place) => { byId("reading").textContent = place; } });
    this.curves = new Curves(byId("charts"));
    new ResizeObserver(() => this.drawCurves()).observe(byId("charts"));
    this.chain = Promise.resolve();
  }

  async begin() {
    this.hello = await this.source.hello;
    const { hello } = this, { settings } = hello;
    this.cards = new Lanes(byId("lanes"), hello, { steer: (lane, schedule) => this.steer(lane, schedule),
      reopen: (lane, track) => this.reopen(lane, track) });
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
    this.showLanes();
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
    this.panels.show(frame, frame.lanes.map((lane) => this.hello.models[lane.model]));
    this.drawCurves();
    this.cards.tell(this.history.points.get(this.shown));
    for (const { id, texts } of this.scales()) byId(id).replaceChildren(...texts.map((text) => make("span", {}, text)));
    Object.assign(byId("scrub"), { min: this.oldest, max: Math.max(this.head, 1), value: this.shown });
    byId("clock").replaceChildren("step ", make("b", {}, String(frame.step)),
      ` · t = ${short(frame.step * frame.domain.dt)}`);
    const now = performance.now();
    this.rendered = [...this.rendered.filter((t) => now - t < 2000), now];
    if (!frame.truth && !this.ended && frame.step > 0) {
      this.ended = true;
      const { frames, context } = this.hello.data;
      this.say(`The data ends at step ${frames[frame.trajectory] - frame.start - context}. The model goes on without truth: nothing below is compared from here on.`);
    }
    const stopped = frame.lanes.map((lane, n) => lane.stopped && `${"AB"[n]} stopped: ${lane.stopped}`)
      .filter(Boolean);
    if (stopped.length) this.say(stopped.join(". "), true);
  }

  /** The colour bars: what their ends and what they mean. */
  scales() {
    const { scale, view } = this.frame, { limit, palettes } = this.panels;
    const name = this.hello.fields[view.field] + (scale.log ? ", logarithmic" : "");
    return [{ id: "ends-field", palette: palettes.field, texts: [short(scale.low), name, short(scale.high)] },
      { id: "ends-residual", palette: palettes.signed, texts: [short(-limit), "prediction − truth", short(limit)] }];
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
      this.cards.sync(this.lanes);
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
    byId("estimate").checked = state.estimate;
    byId("grid").checked = this.panels.grid = state.grid;
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
      this.cards.wrong(lane, "");
      await action();
    } catch (error) {
      if (lane === undefined) this.say(error.message, true);
      else this.cards.wrong(lane, error.message);
    }
  }

  say(text, warn = false) {
    byId("status").textContent = text;
    byId("status").classList.toggle("warn", warn);
  }

  // -- lanes --------------------------------------------------------------------------------------

  showLanes() {
    this.cards.show(this.lanes);
    this.cards.tell(this.history.points.get(this.shown));
    this.curves.name(this.lanes.length);
    byId("compare").textContent = this.lanes.length === 2 ? "One lane" : "Compare two";
  }

  /** Models and schedules of the lanes as they are now. */
  tracks() {
    return this.lanes.map(({ model, schedule }) => ({ model, schedule }));
  }

  async reopen(lane, track) {
    const lanes = this.tracks();
    if (track) lanes[lane] = { model: track.model, schedule: track.schedule };
    const step = this.shown;
    await this.guard(async () => {
      await this.open({ ...this.opened, lanes });
      if (this.source.recorded) await this.goTo(step);
    }, lane);
  }

  async compare() {
    const lanes = this.tracks();
    const { models, recording } = this.hello;
    if (lanes.length === 2) lanes.pop();
    else if (recording) {
      const other = recording.rollouts.find((r) => r.schedule !== lanes[0].schedule) ?? recording.rollouts[0];
      lanes.push({ model: other.model, schedule: other.schedule });
    } else {
      const model = (lanes[0].model + 1) % models.length;
      lanes.push({ model, schedule: usual(models[model]) });
    }
    const step = this.shown;
    await this.guard(async () => {
      await this.open({ ...this.opened, lanes });
      if (this.source.recorded) await this.goTo(step);
    });
  }

  drawCurves() {
    if (!this.frame) return;
    const points = this.history.upTo(this.head);
    this.curves.draw(this.frame, points, this.shown, this.head, this.hello.fields[this.frame.view.field]);
  }

  // -- what is saved ------------------------------------------------------------------------------

  title(frame = this.frame) {
    return `${this.hello.data.name}: ${this.hello.fields[frame.view.field]}, step ${frame.step}`;
  }

  /** What is seen on one canvas. */
  poster(scale) {
    const { panels, curves } = this;
    return poster({ panels, curves, scales: this.scales(), title: this.title(), scale });
  }

  async png() {
    save(await png(this.poster(2)), "overtone-view.png");
  }

  async gif() {
    const before = this.shown, running = this.playing;
    this.pause();
    const first = Math.max(this.oldest, this.head - MAX_GIF + 1);
    const film = new Film(this.panels.palettes);
    for (let step = first; step <= this.head; step++) {
      this.say(`GIF: step ${step} of ${this.head} …`);
      await this.goTo(step);
      film.add(this.poster(1));
      if (step % 4 === 0) await new Promise((resolve) => setTimeout(resolve));
    }
    save(film.file(), "overtone-view.gif");
    this.say(`Saved ${film.frames.length} steps as overtone-view.gif.`);
    await this.goTo(before);
    if (running) this.play();
  }

  state() {
    return { ...this.opened, step: this.shown, view: this.view,
      estimate: byId("estimate").checked, grid: byId("grid").checked,
      events: this.log.events.filter((event) => event.step <= this.shown) };
  }

  async link() {
    const fragment = toFragment(this.state());
    history.replaceState(null, "", fragment);
    const address = location.href.replace(location.search, "");
    const warning = this.log.lost ? ` It has the first ${MAX_EVENTS} changes alone.` : "";
    try {
      await navigator.clipboard.writeText(address);
      this.say(`The link to this state is in the clipboard, and in the address.${warning}`);
    } catch {
      this.say(`The link to this state is in the address.${warning}`);
    }
  }

  // -- controls -----------------------------------------------------------------------------------

  syncControls() {
    const { view, hello } = this, ndim = hello.shape.length;
    byId("field").value = view.field;
    byId("cut").style.display = ndim < 2 ? "none" : "";
    byId("mode").value = ndim === 3 ? `${view.mode}.${view.across}` : `along.${view.along}`;
    const index = byId("index");
    const slider = ndim === 3 && view.mode === "slice" && !this.source.recorded;
    byId("plane").style.display = slider ? "" : "none";
    if (ndim === 3) {
      index.max = hello.shape[view.across] - 1;
      index.value = view.index;
    }
    byId("place").textContent = slider ? `${AXES[view.across]} ${view.index}` : "";
    byId("field").parentElement.classList.toggle("across", ndim < 2);
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
    byId("help").onclick = () => showHelp(byId("about"));
    listen(this);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.drawCurves());
  }

  async reset() {
    if (this.source.recorded) return this.goTo(0);
    const lanes = this.tracks();
    await this.guard(() => this.open({ ...this.opened, lanes }));
  }

  async restart() {
    const lanes = this.tracks();
    const [trajectory, start] = ["trajectory", "start"].map((id) => Math.max(0, Math.round(Number(byId(id).value))));
    await this.guard(() => this.open({ trajectory, start, lanes }));
  }

  theme() {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    this.drawCurves();
  }
}

const app = new App();
window.overtone = app; // for whoever wants to look inside from the browser's console
app.begin();
