// The keyboard: what keys do, and when they are for the control that has the focus instead.
import { byId } from "./words.js";
import { showHelp } from "./help.js";

/** Whether a key belongs to a control: its letters, its arrows, its space. */
function isFor({ tagName, type, id }, key) {
  if (tagName === "SELECT") return true;
  if (tagName === "BUTTON" || type === "checkbox") return key === " ";
  if (type === "range") return id !== "scrub" && (key.startsWith("Arrow") || key === "Home");
  return tagName === "INPUT";
}

/** What a key does; undefined if nothing. `words.js` lists the keys for the page's help. */
function deedOf(app, { key, code, altKey }) {
  const lane = altKey && app.lanes.length > 1 ? 1 : 0;
  if (code === "KeyS") return () => app.cards.toggleShift(lane);
  if (code.startsWith("Digit") && key !== "?") return () => app.cards.press(lane, Number(code.slice(5)));
  return {
    " ": () => app.toggle(), ArrowRight: () => byId("next").click(), ArrowLeft: () => byId("prev").click(),
    Home: () => app.reset(), c: () => app.compare(), g: () => byId("grid").click(), b: () => byId("paint").click(),
    f: () => app.look({ field: (app.view.field + 1) % app.hello.fields.length }), t: () => app.theme(),
    "?": () => showHelp(byId("about")),
  }[key.length === 1 ? key.toLowerCase() : key];
}

/** Let keys act on the page. */
export function listen(app) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || byId("about").open || isFor(event.target, event.key)) return;
    const act = deedOf(app, event);
    if (!act) return;
    event.preventDefault();
    act();
  });
  // After a click with a pointer, space plays again instead of pressing the same button.
  document.addEventListener("click", ({ detail, target }) => {
    const control = target.closest("button, input[type='checkbox']");
    if (detail > 0 && control && !byId("about").open) control.blur();
  });
}
