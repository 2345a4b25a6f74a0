// Closes and deletes rounds; asks for the admin key that this needs.

import { del, hasKey, post, roundPath } from "./api.js";
import { action, announce, dialog, field, fill, h, notice } from "./dom.js";
import { plural } from "./format.js";
import { askForKey, failure } from "./key.js";

/** Close a round after a confirmation. Resolves with whether it was closed. */
export async function closeRound(round) {
  return confirmed(
    `Close ${round.name}?`,
    "Close the round",
    false,
    () => [
      h(
        "p",
        {},
        `It has ${plural(round.n, "report")}. After this no report enters it any more, and it cannot be opened again.`,
      ),
    ],
    () => post(roundPath(round.id, "close"), undefined),
    `${round.name} is closed.`,
  );
}

/** Delete a round after its name was typed. Resolves with whether it was deleted. */
export async function deleteRound(round) {
  const typed = h("input", { autocomplete: "off", spellcheck: "false", name: "typed" });
  return confirmed(
    `Delete ${round.name}?`,
    "Delete round and reports",
    true,
    () => [
      h("p", {}, `The round and its ${plural(round.n, "report")} will be gone for good.`),
      field(`To confirm, type its name: ${round.name}`, typed),
    ],
    () => {
      if (typed.value.trim() !== round.name)
        throw new NotTyped(`What was typed is not ${round.name}.`);
      return del(roundPath(round.id));
    },
    `${round.name} is deleted.`,
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
