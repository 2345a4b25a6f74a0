// The survey's sentences: `languages` has a file a language, named by its code of ISO 639.

const LONGEST_WAIT = 8000; // milliseconds between two tries
const THREE_DIGITS = { maximumSignificantDigits: 3 };
const PERCENT = { style: "percent", ...THREE_DIGITS };
const FORMATS = {
  rate: PERCENT,
  chance: PERCENT,
  times: { ...THREE_DIGITS, roundingMode: "ceil" },
};
const PLAIN = { maximumFractionDigits: 12 };

let language;
let locale;
let sentences;

/** Return the sentence of a key. Numbers are written as its language does, texts isolated. */
export function phrase(key, values = {}) {
  return sentences[key].replace(/\{(\w+)\}/g, (_, name) => {
    const value = values[name];
    if (typeof value !== "number") return `\u2068${value}\u2069`;
    return new Intl.NumberFormat(locale, FORMATS[name] ?? PLAIN).format(value);
  });
}

/** Speak the first of these languages that has a file, or English. Return whether it is another. */
export async function speak(tags) {
  const before = language;
  const isMissing = new Set();
  for (const tag of [...tags, "en"]) {
    const code = codeOf(tag);
    if (code === before) return false;
    if (!code || isMissing.has(code)) continue;
    const file = await load(code);
    if (file) {
      [language, locale, sentences] = [code, tag, file];
      break;
    }
    isMissing.add(code);
  }
  Object.assign(document.documentElement, { lang: language, dir: sentences.direction });
  return true;
}

function codeOf(tag) {
  try {
    return new Intl.Locale(tag).language;
  } catch {
    return null; // null, or no tag
  }
}

/** Return a language's sentences; null if it has no file. Without an answer the page tries again. */
async function load(code) {
  const address = new URL(`languages/${code}.json`, import.meta.url);
  for (let wait = 500; ; wait = Math.min(2 * wait, LONGEST_WAIT)) {
    const answer = await fetch(address).catch(() => null);
    if (answer?.status === 404) return null;
    if (answer?.ok) return answer.json();
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}
