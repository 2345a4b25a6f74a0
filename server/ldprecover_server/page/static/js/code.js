// Commands and code to copy.

import { action, announce, h } from "./dom.js";

/** A block of code with a button that copies it; `title` names it. */
export function code(title, text) {
  const button = action("Copy", copy, { class: "small", "aria-label": `Copy: ${title}` });
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
