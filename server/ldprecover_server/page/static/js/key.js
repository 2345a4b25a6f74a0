// Asks for the access key when it is needed; `api` keeps it in memory only.

import { hasKey, needsKey, sentenceOf, setKey } from "./api.js";
import { action, announce, dialog, field, fill, h, notice } from "./dom.js";

/** Ask for a key, and say `why`. Resolves with whether the viewer gave one. */
export async function askForKey(why = null) {
  await dialog("Access key", (close) => {
    const input = h("input", {
      type: "password",
      autocomplete: "off",
      spellcheck: "false",
      name: "key",
    });
    const said = h("div", {}, why && notice("bad", why));
    const use = async (value) => {
      try {
        await setKey(value);
        announce(hasKey() ? "The key is kept until this page is closed." : "No key is kept.");
        close(true);
      } catch (error) {
        const isWrong = needsKey(error);
        const reason = isWrong ? "The server does not know this key." : sentenceOf(error);
        fill(said, notice("bad", reason));
        input.select();
      }
    };
    const submit = (event) => {
      event.preventDefault();
      use(input.value.trim());
    };
    return h(
      "form",
      { onsubmit: submit },
      h(
        "p",
        {},
        "An admin key opens, closes and deletes rounds; an analyst key reads protected ones. The server printed an admin key when it first started, unless its settings have one. The key stays in the memory of this page and is gone with it.",
      ),
      field("Key", input),
      said,
      h(
        "div",
        { class: "row controls" },
        h("button", { type: "submit", class: "main" }, "Use it"),
        hasKey() && action("Forget the key", () => use(null)),
        action("Cancel", () => close()),
      ),
    );
  });
  return hasKey();
}

/** The message of a failed call, with a button where another key may help. */
export function failure(error) {
  return [
    notice("bad", sentenceOf(error)),
    needsKey(error) && action("Enter another key", () => askForKey()),
  ];
}
