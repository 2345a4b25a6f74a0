// What a drill's round proves before and after the attack: sentences, claims and intervals.

import { dots } from "/page/js/chart/dots.js";
import { frame } from "/page/js/chart/frame.js";
import { h, notice } from "/page/js/dom.js";
import { count, frequency, number, plural } from "/page/js/format.js";

/** Make the part of the score; `draw(order)` draws its chart once it is in the document. */
export function certificates(
  { items, columns, targets, certificates: { before, after } },
  name,
  signal,
) {
  const refused = before.refused ?? after.refused;
  if (refused)
    return { root: section(notice("", `There is no certificate. ${refused}`)), draw() {} };
  const chart = frame({ title: "Proven before and after the attack", name, signal });
  const drawItems = dots(chart, signal);
  const pairs = before.answers.map((answer, k) => [answer, after.answers[k]]);
  const leads = pairs.filter(([answer]) => answer.ahead);
  const certain = leads.filter(([answer]) => answer.certified);
  const still = certain.filter(([, answer]) => answer.certified);
  const truth = columns.true;
  const inside = truth.filter((f, i) => f >= after.lower[i] && f <= after.upper[i]).length;
  const root = h(
    "div",
    {},
    section(
      h(
        "p",
        {},
        `These intervals and claims hold for every attack by at most ${number(100 * before.malicious_share)} % of the reports, the share of this drill.`,
      ),
      said("Before the attack", before),
      said("After the attack", after),
      h(
        "p",
        {},
        `${count(certain.length)} of these ${plural(leads.length, "lead")} are certain before the attack, and ${count(still.length)} of them after it. After it, ${count(inside)} of ${count(items.length)} true frequencies are within their intervals.`,
      ),
      tableOf(pairs, items),
    ),
    chart.root,
  );

  function draw(order) {
    const band = (title, colour, { lower: low, upper: high }) => ({
      name: title,
      colour,
      mark: "band",
      values: [],
      low,
      high,
    });
    const series = [
      band("proven before", "recovered", before),
      band("proven after", "poisoned", after),
      { name: "estimate before", colour: "recovered", mark: "dot", values: columns.genuine },
      { name: "estimate after", colour: "poisoned", mark: "square", values: columns.poisoned },
      { name: "truth", colour: "truth", mark: "tick", values: truth },
    ];
    const interval = ({ lower, upper }, i) => `${frequency(lower[i])} to ${frequency(upper[i])}`;
    drawItems({
      labels: items,
      order,
      series,
      chosen: new Set(targets ?? []),
      describeItem: (i) =>
        `${items[i]}: proven before ${interval(before, i)}, after ${interval(after, i)}; truth ${frequency(truth[i])}`,
    });
    chart.describe(
      `The upper band of an item is proven before the attack, the lower one after it. They hold together with a confidence of ${number(100 * after.confidence)} %.`,
    );
    const columnsOf = [
      ["Before ≥", before.lower],
      ["Before ≤", before.upper],
      ["After ≥", after.lower],
      ["After ≤", after.upper],
      ["Truth", truth],
    ];
    chart.setTable(
      [
        { title: "Item", value: (i) => items[i], kind: "text" },
        ...columnsOf.map(([title, values]) => ({
          title,
          value: (i) => values[i],
          text: frequency,
          kind: "number",
        })),
      ],
      order,
    );
  }

  return { root, draw };
}

function section(...children) {
  return h(
    "section",
    { class: "card", "aria-label": "What stays certain" },
    h("h2", {}, "What stays certain"),
    children,
  );
}

function said(when, { answers: [leader] }) {
  return notice(leader.certified ? "good" : "", h("strong", {}, `${when}: `), leader.sentence);
}

function tableOf(pairs, items) {
  const rows = pairs
    .filter(([answer]) => !answer.top)
    .map(([before, after]) =>
      before.ahead
        ? [
            before.ahead.map((index) => items[index]).join(" is ahead of "),
            proof(before),
            proof(after),
          ]
        : [`${plural(before.items.length, "target")} together`, range(before), range(after)],
    );
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table: What stays certain" },
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          ["Claim", "Before the attack", "After it"].map((title) =>
            h("th", { scope: "col" }, title),
          ),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map(([claim, ...cells]) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, claim),
            cells.map((cell) => h("td", {}, cell)),
          ),
        ),
      ),
    ),
  );
}

function proof({ certified, tolerance }) {
  return [
    h("span", { class: `badge ${certified ? "good" : ""}` }, certified ? "certain" : "not certain"),
    tolerance === null ? "" : ` up to ${percent(tolerance, Math.floor)} forged`,
  ];
}

const range = ({ lower, upper }) =>
  `${percent(lower, Math.floor)} to ${percent(upper, Math.ceil)} of the users`;

/** A share as per cent with two decimals, rounded down or up. */
function percent(share, round) {
  return `${number(round(1e4 * share) / 100, 6)} %`;
}
