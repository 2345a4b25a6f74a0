// The "?" beside a term: its sentence, from page/help.html, which has all of them.

import { get, sentenceOf } from "./api.js";
import { action, announce, h, popup } from "./dom.js";

const ADDRESS = "page/help.html";

let terms = null; // a promise of help.html

/** A button that explains a term, an id of help.html. */
export function help(term, name = term) {
  return action("?", explain, { class: "help", "aria-label": `What is this: ${name}?` });

  async function explain({ currentTarget: button }) {
    let sentence;
    try {
      terms ??= get(ADDRESS, { headers: { Accept: "text/html" } }).then((html) =>
        new DOMParser().parseFromString(html, "text/html"),
      );
      sentence = (await terms).getElementById(term).nextElementSibling.textContent;
    } catch (error) {
      terms = null;
      sentence = sentenceOf(error);
    }
    announce(sentence);
    popup(
      button,
      h("p", {}, sentence),
      h("a", { href: `${ADDRESS}#${term}`, target: "_blank" }, "All terms"),
    );
  }
}
