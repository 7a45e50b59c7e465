// The cards of the lanes: a model and a schedule each, and the numbers of the step that is seen.
import { make, MEASURES, parted, short } from "./words.js";

const NUMBERS = [["error", "VRMSE"], ["seams", "seams"], ["tokens", "tokens"], ["ms", "ms"]];
const EXAMPLES = "Any schedule, such as 16, 4-8-16+shift, bursts:16:4:5 or warmup:4-4-8:16; Enter follows it";
const SHIFT = "Move the patch grid at every step, so that its seams do not add up (S)";
const ADAPTIVE = "The coarsest patch whose own estimate of a step's error stays below 0.02";

/** What a model follows if nobody says: the last of its usual schedules. */
export function usual(model) {
  return model.schedules[model.schedules.length - 1] ?? model.patches[0] ?? "1";
}

/** One card for each lane. */
export class Lanes {
  constructor(element, hello, { steer, reopen }) {
    Object.assign(this, { element, hello, steer, reopen, cards: [], lanes: [] });
  }

  /** Make new cards; where there is a recording, they offer its rollouts alone. */
  show(lanes) {
    this.lanes = lanes;
    this.cards = lanes.map((_, lane) => (this.hello.recording ? this.recordedCard(lane) : this.liveCard(lane)));
    this.element.replaceChildren(...this.cards.map((card) => card.element));
    this.sync(lanes);
  }

  /** Show which model and schedule the lanes have by now. */
  sync(lanes) {
    this.lanes = lanes;
    lanes.forEach(({ schedule, model }, lane) => {
      const card = this.cards[lane], [base, shifted] = parted(schedule);
      if (card.choose) {
        card.choose.value = this.hello.recording.rollouts.findIndex((r) => r.model === model && r.schedule === schedule);
        return;
      }
      for (const { schedule: own, button } of card.choices) {
        button.setAttribute("aria-pressed", String(own === base || own === schedule)); // a plan may have a shift
      }
      card.shift.setAttribute("aria-pressed", String(shifted));
      if (document.activeElement !== card.text) card.text.value = schedule;
    });
  }

  /** The numbers of a step. */
  tell(point) {
    this.cards.forEach(({ values }, lane) => {
      const own = point?.lanes[lane] ?? {};
      const told = { error: short(own.error), seams: own.seams == null ? "–" : `${short(own.seams, 2)} dB`,
        tokens: own.tokens == null ? "–" : String(own.tokens), ms: short(own.ms, 2) };
      for (const [name, text] of Object.entries(told)) values[name].textContent = text;
    });
  }

  /** Say what is wrong with what was asked for in a lane. */
  wrong(lane, text) {
    if (this.cards[lane]) this.cards[lane].wrong.textContent = text;
  }

  /** A patch or a cycle, with the shift that the lane has. */
  choose(lane, schedule) {
    const [, shifted] = parted(this.lanes[lane].schedule);
    this.steer(lane, schedule + (shifted ? "+shift" : ""));
  }

  /** What was typed; once it is followed, keys are the page's again. */
  async follow(lane, text) {
    await this.steer(lane, text.value.trim());
    if (this.cards[lane].wrong.textContent) return;
    text.blur();
    this.sync(this.lanes);
  }

  toggleShift(lane) {
    const [base, shifted] = parted(this.lanes[lane].schedule);
    if (this.cards[lane]?.shift) this.steer(lane, shifted ? base : `${base}+shift`);
  }

  /** The button with a number, counted from 1, as the keys have it. */
  press(lane, number) {
    const found = this.cards[lane]?.choices?.[number - 1];
    found?.button.click();
    return Boolean(found);
  }

  frameCard(lane, ...content) {
    const values = {}, list = make("dl");
    for (const [name, title] of NUMBERS) {
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
    choose.setAttribute("aria-label", `Rollout of lane ${"AB"[lane]}`);
    this.hello.recording.rollouts.forEach(({ model, schedule }, n) => {
      const { name, patched } = this.hello.models[model];
      choose.append(make("option", { value: n }, patched ? `${name} · ${schedule}` : name));
    });
    choose.onchange = () => this.reopen(lane, this.hello.recording.rollouts[choose.value]);
    return { ...this.frameCard(lane, choose), choose };
  }

  liveCard(lane) {
    const own = this.hello.models[this.lanes[lane].model], model = this.modelChoice(lane);
    const choices = own.patched ? this.choices(lane, own) : [];
    const shift = make("button", { title: SHIFT }, "shift");
    shift.onclick = () => this.toggleShift(lane);
    const text = make("input", { type: "text", spellcheck: false, maxLength: 400, title: EXAMPLES });
    text.setAttribute("aria-label", `Schedule of lane ${"AB"[lane]}`);
    text.onkeydown = (event) => { if (event.key === "Enter") this.follow(lane, text); };
    const buttons = make("div", { className: "buttons" }, ...choices.map(({ button }) => button), shift);
    const content = own.patched ? [model, buttons, text]
      : [model, make("div", { className: "note" }, "This model has no patches to choose.")];
    return { ...this.frameCard(lane, ...content), choices, shift, text };
  }

  modelChoice(lane) {
    const { models } = this.hello;
    const model = make("select", { title: "The model of this lane; another one starts again" });
    model.setAttribute("aria-label", `Model of lane ${"AB"[lane]}`);
    models.forEach(({ name, parameters }, n) => {
      model.append(make("option", { value: n, title: `${short(parameters / 1e6, 2)} M parameters` }, name));
    });
    model.value = this.lanes[lane].model;
    model.onchange = () => this.reopen(lane, { model: Number(model.value), schedule: usual(models[model.value]) });
    return model;
  }

  /** Buttons: the model's patches, its cycle, what its estimate chooses, and a plan. */
  choices(lane, own) {
    const button = (name, schedule, title, act) => {
      const element = make("button", { title }, name);
      element.onclick = () => act(lane, schedule);
      return { schedule, button: element };
    };
    const keep = (...arguments_) => this.choose(...arguments_), plain = (...arguments_) => this.steer(...arguments_);
    const cycle = own.schedules.find((schedule) => !schedule.includes("+"));
    const { plan } = this.hello.settings;
    return [
      ...own.patches.map((patch) => button(patch, patch, `Patch ${patch} at every step from the next one on`, keep)),
      ...(cycle ? [button(cycle, cycle, "The patches in turn", keep)] : []),
      ...(own.adaptive ? [button("adaptive", "adaptive:0.02", ADAPTIVE, plain)] : []),
      ...(plan && this.lanes[lane].model === 0 ? [button("plan", plan, "What `overtone plan` has chosen", plain)] : []),
    ];
  }
}
