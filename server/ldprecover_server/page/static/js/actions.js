// Closes and deletes rounds and forms; asks for the admin key that this needs.

import { del, formPath, hasKey, post, roundPath } from "./api.js";
import { action, announce, dialog, field, fill, h, notice } from "./dom.js";
import { plural } from "./format.js";
import { askForKey, failure } from "./key.js";

const PATHS = { round: roundPath, form: formPath };

/** Close a round or a form, its `kind`, after a confirmation. Resolves with whether it was closed. */
export async function close({ id, name, n }, kind) {
  return confirmed(
    `Close ${name}?`,
    `Close the ${kind}`,
    false,
    () => [
      h(
        "p",
        {},
        `It has ${plural(n, "report")}. After this no report enters it any more, and it cannot be opened again.`,
      ),
    ],
    () => post(PATHS[kind](id, "close"), undefined),
    `${name} is closed.`,
  );
}

/** Delete a round or a form after its name was typed. Resolves with whether it was deleted. */
export async function remove({ id, name, n, rounds }, kind) {
  const typed = h("input", { autocomplete: "off", spellcheck: "false", name: "typed" });
  return confirmed(
    `Delete ${name}?`,
    `Delete ${kind} and reports`,
    true,
    () => [
      h(
        "p",
        {},
        `The ${kind}${rounds ? `, its ${plural(rounds.length, "round")}` : ""} and its ${plural(n, "report")} will be gone for good.`,
      ),
      field(`To confirm, type its name: ${name}`, typed),
    ],
    () => {
      if (typed.value.trim() !== name) throw new NotTyped(`What was typed is not ${name}.`);
      return del(PATHS[kind](id));
    },
    `${name} is deleted.`,
  );
}

class NotTyped extends Error {}

async function confirmed(title, label, danger, content, act, done) {
  if (!hasKey() && !(await askForKey())) return false;
  const answer = await dialog(title, (close) => {
    const said = h("div", {});
    const submit = async (event) => {
      event.preventDefault();
      try {
        await act();
        close(true);
      } catch (error) {
        fill(said, error instanceof NotTyped ? notice("bad", error.message) : failure(error));
      }
    };
    return h(
      "form",
      { onsubmit: submit },
      content(),
      said,
      h(
        "div",
        { class: "row controls" },
        h("button", { type: "submit", class: danger ? "danger" : "main" }, label),
        action("Cancel", () => close()),
      ),
    );
  });
  if (answer) announce(done);
  return Boolean(answer);
}
