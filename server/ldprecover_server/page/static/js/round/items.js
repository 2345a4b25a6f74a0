// The items of a round: reported and recovered frequencies, and the truth if known.

import { SERIES } from "../chart/colours.js";
import { dots } from "../chart/dots.js";
import { frame } from "../chart/frame.js";
import { h } from "../dom.js";
import { change, count, frequency, number } from "../format.js";

const WIDE = 1.959964; // standard errors on each side of a normal 95 % interval
const MARKS = ["square", "diamond", "ring", "square", "diamond"];

/** Make the chart of a round's items; `toggle(index)` adds or removes a target. */
export function itemsChart(round, signal, toggle) {
  const shown = frame({
    title: "Frequencies",
    name: `${round.name}-frequencies`,
    signal,
    tableOpen: true,
  });
  const draw = dots(shown, signal);
  const folded = round.items.map((label) => label.toLowerCase());
  const canaries = new Set(round.canaries);
  const labels = round.items.map((label, index) =>
    canaries.has(index) ? `${label} (canary)` : label,
  );

  return {
    root: shown.root,
    plot: shown.plot,
    labels,
    /** Draw estimates, `recovered` `[{name, answer}]` and the truth of the items that settings select; `pending`
     * tells whether more of them have been requested. `certified` is the certificate, null if it is not there, undefined
     * if the protocol has none. */
    draw({ estimates, recovered, certified, pending, truth, settings, suspicion }) {
      const series = columns(estimates, recovered, truth);
      const band = certified && bandOf(certified);
      const all = chosen(series, folded, settings, suspicion);
      const order = settings.top === "all" ? all : all.subarray(0, Number(settings.top));
      const describeItem = (index) =>
        `${labels[index]}: ${series.map((each) => `${each.name} ${frequency(each.values[index])}`).join(", ")}${band ? `, proven from ${frequency(band.low[index])} to ${frequency(band.high[index])}` : ""}`;
      draw({
        labels,
        order,
        series: band ? [...series, band] : series,
        chosen: settings.targets,
        onChoose: toggle,
        describeItem,
      });
      const bands = band
        ? " Bands are proven: they hold whatever forged reports say, if no more are forged than assumed."
        : "";
      shown.describe(sentence(order, all, round, estimates, settings) + bands);
      shown.setTable(tableColumns(labels, series, certified, estimates, settings, toggle), order, {
        isChosen: (index) => settings.targets.has(index),
        long: true,
        pending,
      });
    },
  };
}

/** The certified intervals as a series of the chart. */
function bandOf(certified) {
  return {
    name: `proven if at most ${number(100 * certified.malicious_share)} % are forged`,
    colour: "quiet",
    mark: "band",
    values: [],
    low: certified.lower,
    high: certified.upper,
  };
}

/** The columns of the chart, the poisoned ones first. */
export function columns(estimates, recovered, truth) {
  const ends = (sign) =>
    estimates.frequencies.map((value, i) => value + sign * WIDE * estimates.standard_errors[i]);
  const series = [
    {
      name: "poisoned, as reported",
      short: "reported",
      colour: "poisoned",
      mark: "dot",
      values: estimates.frequencies,
      low: ends(-1),
      high: ends(1),
    },
  ];
  recovered.forEach(({ name, answer }, k) => {
    const drawn = answer.conclusions;
    series.push({
      name,
      short: name,
      colour: SERIES[k % SERIES.length],
      mark: MARKS[k % MARKS.length],
      values: answer.recovered,
      low: drawn?.lower ?? null,
      high: drawn?.upper ?? null,
    });
  });
  if (truth)
    series.push({
      name: "truth",
      short: "truth",
      colour: "truth",
      mark: "tick",
      values: truth.frequencies,
      low: null,
      high: null,
    });
  return series;
}

/** The indices of the items that match the search, in the selected order. */
function chosen(series, folded, settings, suspicion) {
  const wanted = settings.find.trim().toLowerCase();
  const found = [];
  for (let i = 0; i < folded.length; i++) if (!wanted || folded[i].includes(wanted)) found.push(i);
  const order = Int32Array.from(found);
  const [poisoned, first] = [
    series[0].values,
    series[1]?.mark === "tick" ? null : series[1]?.values,
  ];
  const by = {
    frequency: (i) => -poisoned[i],
    recovered: (i) => -(first ?? poisoned)[i],
    change: (i) => (first ? -Math.abs(first[i] - poisoned[i]) : -poisoned[i]),
    suspicion: (i) => -suspicion(i),
    index: (i) => i,
  }[settings.sort];
  if (!by)
    return order.sort((a, b) => (folded[a] < folded[b] ? -1 : folded[a] > folded[b] ? 1 : a - b));
  const keys = new Float64Array(folded.length);
  for (const i of order) keys[i] = by(i);
  return order.sort((a, b) => keys[a] - keys[b] || a - b);
}

function sentence(order, all, round, estimates, settings) {
  const what =
    all.length === round.items.length
      ? `of ${count(round.items.length)} items`
      : `of ${count(all.length)} items found among ${count(round.items.length)}`;
  const sum = `The estimates sum to ${number(estimates.sum, 4)}; honest reports make it 1${estimates.sum_standard_error > 0 ? ` ± ${number(WIDE * estimates.sum_standard_error, 2)}` : ""}.`;
  return `${count(order.length)} ${what}, of ${count(estimates.n)} reports. ${sum} Whiskers hold 95 %.${settings.targets.size ? ` ${count(settings.targets.size)} targets are marked.` : ""}${(estimates.notes ?? []).map((note) => ` ${note}`).join("")}`;
}

function tableColumns(labels, series, certified, estimates, settings, toggle) {
  const box = (index, old) => {
    const input =
      old ?? h("input", { type: "checkbox", onchange: (event) => toggle(event.target.item) });
    input.item = index;
    input.checked = settings.targets.has(index);
    input.setAttribute("aria-label", `Target: ${labels[index]}`);
    return input;
  };
  const [reported, ...others] = series;
  const main = others.find((each) => each.mark !== "tick");
  return [
    { title: "Target", kind: "narrow", value: (index) => settings.targets.has(index), node: box },
    { title: "Item", kind: "text", value: (index) => labels[index] },
    {
      title: "Reported",
      kind: "number",
      value: (index) => reported.values[index],
      text: frequency,
    },
    {
      title: "± 95 %",
      kind: "number",
      value: (index) => WIDE * estimates.standard_errors[index],
      text: frequency,
    },
    ...(certified === undefined
      ? []
      : [
          ["Proven ≥", certified?.lower],
          ["Proven ≤", certified?.upper],
        ].map(([title, ends]) => ({
          title,
          kind: "number",
          value: (index) => ends?.[index] ?? null,
          text: frequency,
        }))),
    ...others.map((each) => ({
      title: each.short,
      kind: "number",
      value: (index) => each.values[index],
      text: frequency,
    })),
    ...(main
      ? [
          {
            title: "Change",
            kind: "number",
            value: (index) => main.values[index] - reported.values[index],
            text: change,
          },
        ]
      : []),
  ];
}
