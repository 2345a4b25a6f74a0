// Formats numbers and times for people.

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en-US", { notation: "compact", maximumSignificantDigits: 3 });

/** 1234567 as 1,234,567; a dash for null. */
export function count(value) {
  return value === null || value === undefined ? "–" : whole.format(value);
}

/** 1234567 as 1.23M. */
export function compact(value) {
  return value === null || value === undefined ? "–" : short.format(value);
}

/** 13000816 as 13 MB. */
export function bytes(value) {
  if (value === null || value === undefined) return "–";
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let size = value;
  while (size >= 999.5 && units.length > 1) {
    size /= 1000;
    units.shift();
  }
  return `${number(size)} ${units[0]}`;
}

/** The largest ε that surveys and clients take unless told otherwise. */
export const MAX_EPSILON = 2;

/** A number with at most `digits` significant digits. */
export function number(value, digits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 1e-4 || size >= 1e7)
    return value
      .toExponential(digits - 1)
      .replace("-", "−")
      .replace("e−", "e-");
  return String(Number(value.toPrecision(digits))).replace("-", "−");
}

/** A frequency as per cent with two decimals, or two digits of a small one. */
export function frequency(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const share = 100 * value;
  const text = share !== 0 && Math.abs(share) < 0.1 ? number(share, 2) : share.toFixed(2);
  return `${text.replace("-", "−")} %`;
}

/** A change of frequency in percentage points, with its sign. */
export function change(value) {
  const text = frequency(value).replace(" %", " points");
  return value > 0 ? `+${text}` : text;
}

/** A share as per cent. */
export function percent(value, digits = 1) {
  return value === null || value === undefined ? "–" : `${(100 * value).toFixed(digits)} %`;
}

/** A share as per cent for a sentence: "5 %", "0.9 %", "less than 0.1 %". */
export function share(value) {
  return value > 0 && value < 0.001 ? "less than 0.1\u00a0%" : `${number(100 * value, 2)}\u00a0%`;
}

/** A difference of frequencies in percentage points with two digits: "0.72 points". */
export function points(value) {
  const text = number(100 * value, 2);
  return `${value >= 10 && value < 1e5 ? count(Number(text)) : text}\u00a0points`;
}

/** An ISO 8601 time in the viewer's time zone. */
export function time(text) {
  return text
    ? new Date(text).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" })
    : "–";
}

/** The day of an ISO 8601 time in the viewer's time zone. */
export function day(text) {
  return new Date(text).toLocaleDateString("en-GB", { dateStyle: "medium" });
}

/** Since when a round or a form is open or closed. */
export const since = ({ state, opened_at: opened, closed_at: closed }) =>
  state === "open" ? `open since ${day(opened)}` : `closed ${day(closed)}`;

/** "1 item", "2 items". */
export function plural(n, one, many = `${one}s`) {
  return `${count(n)} ${n === 1 ? one : many}`;
}

const OTHER_DIRECTION =
  /[\u0590-\u08ff\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/** A label within a sentence: one with right-to-left characters does not reorder the text around it. */
export function isolated(label) {
  if (!OTHER_DIRECTION.test(label)) return label;
  return `\u2068${label.replace(/[\u202a-\u202e\u2066-\u2069]/g, "")}\u2069`;
}
