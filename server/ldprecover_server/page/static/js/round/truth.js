// The true frequencies, from a file that never leaves the browser.

import { labelKey } from "../../client/src/labels.js";
import { guarded } from "../chart/csv.js";
import { numeric } from "../chart/frame.js";
import { table } from "../chart/table.js";
import { action, field, fill, h, notice } from "../dom.js";
import { count, frequency, isolated, number, plural } from "../format.js";

/**
 * Parse the true frequencies from the text of a file. JSON: `{"label": number}`, `[["label", number], …]`, objects with
 * `label` and `count` or `frequency`, or `{"items": […], "frequencies" or "counts": […]}`. CSV: a label and a number a line.
 * Returns the frequencies by item of the round. Throws an Error with the reason.
 */
export function readTruth(text, labels) {
  const pairs = /^\s*[[{]/.test(text) ? fromJson(JSON.parse(text)) : fromCsv(text);
  // Our CSV puts an apostrophe before some labels; accept it unless it is another item's label.
  const indices = new Map(labels.map((label, index) => [labelKey(guarded(label)), index]));
  labels.forEach((label, index) => indices.set(labelKey(label), index));
  const truth = new Float64Array(labels.length);
  let unknown = 0;
  let sum = 0;
  for (const [label, value] of pairs) {
    if (!Number.isFinite(value) || value < 0)
      throw new Error(`the number of ${isolated(String(label))} must be 0 or more`);
    const index = indices.get(labelKey(String(label)));
    if (index === undefined) {
      unknown += 1;
      continue;
    }
    truth[index] += value;
    sum += value;
  }
  if (unknown === pairs.length) throw new Error("no label of the file is an item of this round");
  if (sum <= 0) throw new Error("the numbers must not all be zero");
  return { frequencies: truth.map((value) => value / sum), unknown, given: pairs.length };
}

function fromJson(parsed) {
  const values = parsed.frequencies ?? parsed.counts;
  if (Array.isArray(parsed.items) && Array.isArray(values))
    return parsed.items.map((label, i) => [label, Number(values[i])]);
  if (!Array.isArray(parsed))
    return Object.entries(parsed).map(([label, value]) => [label, Number(value)]);
  return parsed.map((each) =>
    Array.isArray(each)
      ? [each[0], Number(each[1])]
      : [each.label ?? each.item, Number(each.frequency ?? each.count)],
  );
}

function fromCsv(text) {
  const lines = text
    .replace(/^\ufeff/, "")
    .split(/\r?\n/)
    .filter((line) => line.trim());
  const pairs = lines.map((line) => {
    const found = /^(?:"((?:[^"]|"")*)"|(.*?))\s*[,;\t]\s*([^,;\t]*)$/.exec(line);
    if (!found)
      throw new Error(`a line must be a label, a comma and a number: ${line.slice(0, 60)}`);
    return [
      found[1]?.replaceAll('""', '"') ?? found[2].trim(),
      found[3].trim() === "" ? NaN : Number(found[3]),
    ];
  });
  return Number.isFinite(pairs[0]?.[1]) ? pairs : pairs.slice(1); // a first line without a number is a header
}

/** Mean squared error of estimates, and what the targets gained beyond the truth. */
export function score(values, truth, targets) {
  let squares = 0;
  for (let i = 0; i < truth.length; i++) squares += (values[i] - truth[i]) ** 2;
  let gain = 0;
  for (const index of targets) gain += values[index] - truth[index];
  return { mse: squares / truth.length, gain };
}

/** The panel with the file input and the scores of the shown estimates. */
export function truthPanel(labels, changed, signal) {
  const said = h("div", {});
  const scores = h("div", {});
  let truth = null;
  const input = h("input", { type: "file", accept: ".csv,.json,.txt,text/csv,application/json" });
  const drop = action("Forget it", () => set(null), { class: "small", hidden: true });
  const set = (found) => {
    truth = found;
    drop.hidden = found === null;
    if (found === null) [input.value, scores.textContent] = ["", ""];
    fill(
      said,
      found &&
        notice(
          "good",
          `${plural(found.given - found.unknown, "item")} read. `,
          found.unknown
            ? `${plural(found.unknown, "label")} of the file ${found.unknown === 1 ? "is no item" : "are no items"} of this round and left out.`
            : null,
        ),
    );
    changed();
  };
  // Allows the same file to be selected again after a correction.
  input.addEventListener("click", () => (input.value = ""));
  input.addEventListener("change", async () => {
    if (!input.files.length) return;
    try {
      set(readTruth(await input.files[0].text(), labels));
    } catch (error) {
      set(null);
      fill(said, notice("bad", `The file could not be read: ${error.message}.`));
    }
  });
  return {
    root: h(
      "section",
      { class: "card" },
      h("h2", {}, "Beside the truth"),
      h(
        "p",
        {},
        "If you know what users hold, from a simulation or a census, load it: CSV or JSON of labels and counts or frequencies. The file is read in this browser and sent nowhere.",
      ),
      h("div", { class: "controls" }, field("Truth file", input), drop),
      said,
      scores,
    ),
    get: () => truth,
    set: (frequencies) => set({ frequencies, unknown: 0, given: frequencies.length }),
    /** Show the scores of columns `[{name, values}]`, the poisoned ones first. */
    show(columns, targets) {
      const found = columns.map((column) => ({
        ...column,
        ...score(column.values, truth.frequencies, targets),
      }));
      const [poisoned] = found;
      const times = (row) => poisoned.mse / row.mse;
      const shown = [
        { title: "", value: (row) => row.name },
        numeric(
          "Mean squared error",
          (row) => row.mse,
          (value) => number(value),
        ),
        numeric("Poisoned error is", times, (value, row) =>
          row === poisoned ? "–" : `${number(value)} times it`,
        ),
        targets.size > 0 &&
          numeric(`Gain of ${count(targets.size)} targets`, (row) => row.gain, frequency),
        {
          title: "In words",
          value: (row) => (row === poisoned ? "as it was reported" : verdict(times(row))),
        },
      ].filter(Boolean);
      fill(
        scores,
        table({ columns: shown, rows: found, caption: "Scores against the truth", signal }).root,
      );
    },
  };
}

function verdict(times) {
  if (times > 1.05) return "nearer to the truth";
  return times < 0.95
    ? "does not help here: farther from the truth"
    : "does not help here: as far from the truth";
}
