// Commands and code to copy.

import { announce, h } from "./dom.js";

/** A block of code with a button that copies it; `title` names it. */
export function code(title, text) {
  const button = h(
    "button",
    { type: "button", class: "small", "aria-label": `Copy: ${title}`, onclick: copy },
    "Copy",
  );
  const body = h("pre", {}, h("code", {}, text));

  async function copy() {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
      announce("Copied.");
    } catch {
      getSelection().selectAllChildren(body); // without https there is no clipboard
      button.textContent = "Press Ctrl+C";
    }
  }
  return h("div", { class: "code" }, h("div", { class: "row" }, h("h3", {}, title), button), body);
}
