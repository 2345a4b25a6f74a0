// A text field with suggestions: the combobox with a list of WAI-ARIA 1.2, for many items.
//
// The search folds what people leave out or have no key for. Of 10,000 items it takes a few
// milliseconds.
import { phrase } from "./language.js";

const SHOWN = 50; // suggestions of one search
/** Letters for those that many keyboards lack or that people write for one another. */
const LETTERS = {
  ...{ ß: "ss", æ: "ae", œ: "oe", ø: "o", đ: "d", ð: "d", ł: "l", þ: "th", ı: "i", ħ: "h" },
  ...{ ŧ: "t", ə: "e", ς: "σ", ґ: "г", ٱ: "ا", ة: "ه", ہ: "ه", ە: "ه", ى: "ي", ی: "ي", ک: "ك" },
  ...{ ך: "כ", ם: "מ", ן: "נ", ף: "פ", ץ: "צ", "״": '"' },
};
const OTHER = new RegExp(`[${Object.keys(LETTERS).join("")}]`, "g");
const SPACING_ACCENTS = /[`´΄᾽῾]/g; // which would become marks on a space
const APOSTROPHES = /['‘’‚‛ʹʻʼʽ′׳ꞌ]/g;
const QUOTES = /[“”„‟«»″]/g;
const DASHES = /[‐-―−־]/g;
const KATAKANA = /[ァ-ヶ]/g;
const DIGITS = /[٠-٩۰-۹]/g;
// Accents, hamza, harakat, niqqud, tatweel and characters without width; vowel signs of India and
// South-East Asia and the voicing marks of kana are no accents.
const MARKS = new RegExp(
  String.raw`(?![\u3099\u309a])\p{Script=Inherited}|[ـء\p{Cf}]|` +
    String.raw`(?=[\p{Script=Arabic}\p{Script=Cyrillic}\p{Script=Hebrew}\p{Script=Syriac}])\p{M}`,
  "gu",
);

const make = (tag, properties = {}, attributes = {}) => {
  const element = Object.assign(document.createElement(tag), properties);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
};

/** Return a text for a search: equal for texts that differ in case, accents and the like. */
export function fold(text) {
  return text
    .replace(SPACING_ACCENTS, "'")
    .normalize("NFKD")
    .replace(MARKS, "")
    .toLowerCase()
    .replace(OTHER, (letter) => LETTERS[letter])
    .replace(APOSTROPHES, "")
    .replace(QUOTES, '"')
    .replace(DASHES, "-")
    .replace(KATAKANA, (kana) => String.fromCharCode(kana.charCodeAt() - 96))
    .replace(DIGITS, (digit) => digit.charCodeAt() & 15)
    .replace(/\s+/g, " ")
    .trim();
}

/**
 * Return the indices of the items that have the text: those that start with it first, then those
 * with a word that does, then others; each in the order of the items.
 */
export function matches(folded, text) {
  const wanted = fold(text);
  const ranks = [[], [], []];
  folded.forEach((item, i) => {
    const place = item.indexOf(wanted);
    if (place < 0) return;
    const isWord = item.includes(` ${wanted}`) || !/[\p{L}\p{N}]/u.test(item[place - 1] ?? " ");
    ranks[place === 0 ? 0 : isWord ? 1 : 2].push(i);
  });
  return ranks.flat();
}

/**
 * Make the field. `root` is to be shown; `value()` is the chosen item, or null; `input` is the
 * control, whose `aria-describedby` starts with the id of the number of suggestions. The items are
 * in the language `lang`.
 */
export function combobox(items, lang) {
  const folded = items.map(fold);
  const input = make(
    "input",
    {
      id: "item",
      type: "text",
      dir: "auto",
      autocomplete: "off",
      spellcheck: false,
      autocapitalize: "off",
    },
    {
      lang,
      role: "combobox",
      "aria-autocomplete": "list",
      "aria-expanded": "false",
      "aria-controls": "suggestions",
      "aria-describedby": "suggested",
    },
  );
  const label = make("label", { htmlFor: "item", textContent: phrase("answer") });
  const list = make(
    "ul",
    { id: "suggestions", hidden: true },
    { role: "listbox", "aria-label": phrase("answers") },
  );
  const count = items.length;
  const hint = phrase("search", { count });
  const suggested = make("p", { id: "suggested", textContent: hint }, { role: "status" });
  const root = make("div", { className: "combobox" });
  root.append(label, input, list, suggested);
  let active = -1;

  function show(isOpen) {
    list.hidden = !isOpen;
    input.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) list.scrollIntoView({ block: "nearest" });
    else activate(-1);
  }

  function activate(next) {
    list.children[active]?.setAttribute("aria-selected", "false");
    active = next;
    const option = list.children[active];
    if (!option) return input.removeAttribute("aria-activedescendant");
    option.setAttribute("aria-selected", "true");
    option.scrollIntoView({ block: "nearest" });
    return input.setAttribute("aria-activedescendant", option.id);
  }

  function suggest(event) {
    const found = matches(folded, input.value);
    const options = found.slice(0, SHOWN).map((i) => {
      const option = make(
        "li",
        { id: `option-${i}` },
        { role: "option", "aria-selected": "false" },
      );
      option.append(make("bdi", { textContent: items[i], lang }));
      option.addEventListener("click", () => choose(i));
      return option;
    });
    list.replaceChildren(...options);
    active = -1;
    // Once an answer is typed out, an open list would only cover the button.
    const isWhole = event && found.length === 1 && folded[found[0]] === fold(input.value);
    show(options.length > 0 && !isWhole);
    if (isWhole) return say(items[found[0]]);
    const key = found.length > SHOWN ? "first" : found.length ? "matches" : "none";
    suggested.textContent = phrase(key, { number: found.length, count, shown: SHOWN });
  }

  function say(item) {
    suggested.replaceChildren(`${phrase("chosen")} `, make("bdi", { textContent: item, lang }));
  }

  function choose(i) {
    input.value = items[i];
    show(false);
    say(items[i]);
    input.dispatchEvent(new Event("change", { bubbles: true }));
  }

  function press(event) {
    const isOpen = !list.hidden;
    const last = list.children.length - 1;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (!isOpen) suggest();
      const step = event.key === "ArrowDown" ? 1 : -1;
      const length = list.children.length;
      if (!event.altKey && length)
        activate(
          isOpen && active >= 0 ? (active + step + length) % length : step > 0 ? 0 : length - 1,
        );
    } else if ((event.key === "PageDown" || event.key === "PageUp") && isOpen) {
      activate(Math.min(last, Math.max(0, active + (event.key === "PageDown" ? 8 : -8))));
    } else if (event.key === "Enter" && isOpen && active >= 0) {
      list.children[active].click();
    } else if (event.key === "Escape") {
      if (!isOpen) input.value = "";
      show(false);
    } else return;
    event.preventDefault();
  }

  input.addEventListener("input", suggest);
  input.addEventListener("click", () => list.hidden && suggest());
  input.addEventListener("keydown", press);
  input.addEventListener("blur", () => show(false));
  // Else a press on the list would take the focus from the field, which closes the list.
  list.addEventListener("mousedown", (event) => event.preventDefault());

  return {
    root,
    input,
    value() {
      const exact = items.indexOf(input.value);
      if (exact >= 0) return items[exact];
      const wanted = fold(input.value);
      const alike = folded.flatMap((each, i) => (each === wanted ? [i] : []));
      return wanted && alike.length === 1 ? items[alike[0]] : null;
    },
  };
}
