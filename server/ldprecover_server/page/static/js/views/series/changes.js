// What changed between two rounds or windows, as a sentence and a table.

import { table } from "../../chart/table.js";
import { h } from "../../dom.js";
import { isolated, percent } from "../../format.js";

const NAMED = 3; // items and runs of rounds in a sentence
const FEW = 12; // rows, unless all are shown

/** Ascending numbers in runs: "2, 5 to 9". */
export function ranges(numbers) {
  const found = [];
  for (const each of numbers) {
    if (found.at(-1)?.at(-1) === each - 1) found.at(-1).push(each);
    else found.push([each]);
  }
  const text = (run) => (run.length > 2 ? `${run[0]} to ${run.at(-1)}` : run.join(", "));
  return found.map(text).join(", ");
}

const side = (numbers) => `${numbers.length > 1 ? "rounds" : "round"} ${ranges(numbers)}`;

const signed = (value) => {
  const text = (100 * value).toFixed(Math.abs(value) >= 0.01 ? 1 : 2).replace("-", "−");
  return value > 0 ? `+${text}` : text;
};

/** The ends of the intervals that decide the words of an answer. */
const ends = (answer) =>
  answer.words_from === "certificate"
    ? [answer.certified_lower, answer.certified_upper]
    : [answer.lower, answer.upper];

/** What changed in one sentence; none without an answer. */
export function changesSentence(answer) {
  if (!answer) return "";
  const { items, changes, words, numbers, since_numbers: before } = answer;
  const moved = byChange(changes, words).filter((i) => words[i] !== "not_proven");
  const texts = moved.slice(0, NAMED).map((i) => {
    const size = signed(Math.abs(changes[i])).slice(1);
    return `${isolated(items[i])} ${words[i]} by ${size} points`;
  });
  if (moved.length > NAMED) texts.push(`${moved.length - NAMED} more changed`);
  const found = texts.join(", ") || "no change is proven";
  return `From ${side(before)} to ${side(numbers)}: ${found}.`;
}

/** The table of changes, proven ones first. */
export function changesTable(answer, isAll, signal) {
  const { items, changes, words, proven_up_to: proven, malicious_share: assumed } = answer;
  const [low, high] = ends(answer);
  const order = byChange(changes, words);
  const few = Math.max(FEW, words.filter((word) => word !== "not_proven").length);
  const finding = (i) => {
    const between = low[i] === null ? "" : `: between ${signed(low[i])} and ${signed(high[i])}`;
    if (words[i] === "not_proven") return `no change proven${between}`;
    const stands = proven[i] === null ? "" : `; even if ${percent(proven[i], 2)} are malicious`;
    return `${words[i]}${between}${stands}`;
  };
  const columns = [
    { title: "Item", value: (i) => items[i] },
    { title: "Points", kind: "number", value: (i) => changes[i], text: signed },
    { title: "Finding", value: finding },
  ];
  const basis =
    answer.words_from === "certificate"
      ? `A verdict sees an attack, so findings hold whatever malicious reports say, if at most ${percent(assumed)} are malicious.`
      : "Findings hold for all items together at 95 %, if no report is malicious.";
  const rows = isAll ? order : order.slice(0, few);
  const made = table({ columns, rows, caption: "What changed", signal });
  return [h("p", {}, basis), made.root];
}

/** The indices of items: proven changes first, then the largest. */
function byChange(changes, words) {
  const size = (i) => (words[i] === "not_proven" ? 0 : 1) + Math.abs(changes[i]);
  return Array.from(changes.keys()).sort((i, j) => size(j) - size(i));
}
