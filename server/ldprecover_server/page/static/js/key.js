// Asks for the access key when it is needed; `api` keeps it in memory only.

import { hasKey, setKey } from "./api.js";
import { announce, dialog, field, h } from "./dom.js";

/** Ask for a key. Resolves with whether the viewer gave one. */
export async function askForKey() {
  await dialog("Access key", (close) => {
    const input = h("input", {
      type: "password",
      autocomplete: "off",
      spellcheck: "false",
      name: "key",
    });
    const submit = (event) => {
      event.preventDefault();
      setKey(input.value.trim());
      announce(hasKey() ? "The key is kept until this page is closed." : "No key is kept.");
      close(true);
    };
    return h(
      "form",
      { onsubmit: submit },
      h(
        "p",
        {},
        "To open, close and delete rounds it must be an admin key. It stays in the memory of this page and is gone with it.",
      ),
      field("Key", input),
      h(
        "div",
        { class: "row controls" },
        h("button", { type: "submit", class: "main" }, "Use it"),
        hasKey() &&
          h(
            "button",
            {
              type: "button",
              onclick: () => {
                setKey(null);
                close(true);
              },
            },
            "Forget the key",
          ),
        h("button", { type: "button", onclick: () => close() }, "Cancel"),
      ),
    );
  });
  return hasKey();
}
