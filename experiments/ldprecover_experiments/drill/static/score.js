// The score of a drill: the verdict, errors by method, estimates beside the truth, and what is proven.

import { SERIES } from "/page/js/chart/colours.js";
import { downloadCsv } from "/page/js/chart/csv.js";
import { dots } from "/page/js/chart/dots.js";
import { frame } from "/page/js/chart/frame.js";
import { fill, h } from "/page/js/dom.js";
import { link } from "/page/js/router.js";
import { FORGED } from "/page/js/round/settings.js";

import { bars } from "./bars.js";
import { certificates } from "./certificates.js";
import { share } from "./words.js";

const [BEFORE, AFTER, PROJECTION] = ["before the attack", "after the attack", "projection alone"];

/** Show the score in an element. */
export function showScore(place, { settings, result, round }, signal) {
  const { rows, items, targets, truth } = result;
  const named = (name) => rows.find((row) => row.names.includes(name));
  const best = rows.find((row) => row.names[0] === result.best) ?? null;
  const chart = frame({ title: "Estimates beside the truth", name: `drill-${round}`, signal });
  fill(
    place,
    h(
      "section",
      { class: "card", "aria-label": "Verdict" },
      h("h2", { class: "drill-verdict", tabindex: "-1" }, result.headline),
      h(
        "ul",
        {},
        result.details.map((each) => h("li", {}, each)),
      ),
    ),
    h(
      "section",
      { class: "card", "aria-label": "Errors" },
      h("h2", {}, "Mean squared error against the truth"),
      bars(
        rows,
        {
          before: named(BEFORE),
          after: named(AFTER),
          projection: named(PROJECTION),
          best,
        },
        targets !== null,
      ),
      h(
        "div",
        { class: "row" },
        button("Errors as CSV", () => keepErrors(rows, round)),
        button("Truth as CSV", () => keepTruth(items, truth, round)),
        h(
          "a",
          {
            href: link(["rounds", round], {
              targets: targets?.join(","),
              eta: settings.eta,
              forged: FORGED.find((each) => each >= settings.beta),
            }),
          },
          `The round ${round}`,
        ),
        h("span", { class: "quiet" }, "takes the truth, and compares with it."),
      ),
    ),
    chart.root,
    certificates(result),
    remarks(result),
  );
  drawEstimates(chart, result, best?.names[0] ?? PROJECTION, signal);
}

function drawEstimates(chart, { items, targets, truth, columns }, first, signal) {
  const draw = dots(chart, signal);
  const chosen = new Set(targets ?? []);
  const order = items
    .map((_, i) => i)
    .sort((a, b) => chosen.has(b) - chosen.has(a) || truth[b] - truth[a]);
  const names = Object.keys(columns).filter((name) => name !== BEFORE && name !== AFTER);
  const select = h(
    "select",
    { value: first, onchange: show },
    names.map((name) => h("option", { value: name }, name)),
  );
  chart.plot.before(h("label", { class: "field" }, h("span", {}, "Recovery shown"), select));
  show();

  function show() {
    const name = select.value;
    const series = [
      { name: AFTER, colour: "poisoned", mark: "square", values: columns[AFTER] },
      { name, colour: SERIES[0], mark: "dot", values: columns[name] },
      { name: "truth", colour: "truth", mark: "tick", values: truth },
    ].filter((each) => each.values);
    const describeItem = (i) =>
      `${items[i]}: ${series.map((each) => `${each.name} ${share(each.values[i])}`).join(", ")}`;
    draw({ labels: items, order, series, chosen, describeItem });
    chart.describe(
      `${targets ? "Targets first, then the" : "The"} most frequent items first: ${series.map((each) => each.name).join(", ")}.`,
    );
    const all = { truth, ...columns };
    chart.setTable(
      [
        { title: "Item", value: (i) => items[i], kind: "text" },
        ...(targets
          ? [{ title: "Target", value: (i) => (chosen.has(i) ? "yes" : ""), kind: "narrow" }]
          : []),
        ...Object.entries(all).map(([title, values]) => ({
          title,
          value: (i) => values[i],
          text: share,
          kind: "number",
        })),
      ],
      order,
    );
  }
}

function remarks({ rows, refused }) {
  const said = rows.filter((row) => row.notes.length).map((row) => [row.names[0], row.notes]);
  said.push(...Object.entries(refused).map(([name, reason]) => [name, [`Not run: ${reason}`]]));
  if (!said.length) return null;
  return h(
    "details",
    { class: "card" },
    h("summary", {}, "What the methods say"),
    said.map(([name, notes]) => [
      h("h3", {}, name),
      h(
        "ul",
        {},
        notes.map((note) => h("li", {}, note)),
      ),
    ]),
  );
}

const button = (text, onclick) => h("button", { type: "button", class: "small", onclick }, text);

function keepErrors(rows, round) {
  const columns = [
    { title: "estimate", value: (row) => row.names.join(" = ") },
    ...["mse", "harm", "gain", "excess", "times"].map((title) => ({
      title,
      value: (row) => row[title],
    })),
  ];
  downloadCsv(`drill-${round}`, columns, rows);
}

function keepTruth(items, truth, round) {
  const columns = [
    { title: "label", value: (i) => items[i] },
    { title: "frequency", value: (i) => truth[i] },
  ];
  downloadCsv(`truth-${round}`, columns, items.keys());
}
