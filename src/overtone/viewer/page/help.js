// The page's own help: keys, measures, and how time is meant.
import { KEYS, make, MEASURES } from "./words.js";

const TIME = "Steps that were made can be looked at again with the slider. What you change, a schedule or the "
  + "field itself, is changed at the step that you see; what came after it is made anew.";

/** Terms and what they mean. */
function rows(pairs, wrap) {
  return make("dl", {}, ...pairs.flatMap(([term, text]) => [make("dt", {}, wrap(term)), make("dd", {}, text)]));
}

/** Open the help in a dialog. */
export function showHelp(dialog) {
  const close = make("button", {}, "Close");
  close.onclick = () => dialog.close();
  const measures = Object.values(MEASURES).map((text) => text.split(": ", 2));
  dialog.replaceChildren(make("h2", {}, "Keys"), rows(KEYS, (key) => make("kbd", {}, key)),
    make("h2", {}, "Measures"), rows(measures, (name) => name),
    make("h2", {}, "Time"), make("p", {}, TIME), close);
  dialog.showModal();
}
