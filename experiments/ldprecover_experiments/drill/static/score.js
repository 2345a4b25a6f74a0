// The score of a drill: errors before and after by method, estimates, and their meaning.

import { SERIES } from "/page/js/chart/colours.js";
import { downloadCsv } from "/page/js/chart/csv.js";
import { dots } from "/page/js/chart/dots.js";
import { frame } from "/page/js/chart/frame.js";
import { fill, h } from "/page/js/dom.js";
import { change, count, frequency, number, plural } from "/page/js/format.js";
import { link } from "/page/js/router.js";
import { FORGED } from "/page/js/round/settings.js";

import { bars } from "./bars.js";
import { certificates } from "./certificates.js";

const COLOURS = { genuine: "truth", poisoned: "poisoned" };

/** Show the score in an element. */
export function showScore(place, { settings, result, round }, signal) {
  const { rows, items, targets, columns } = result;
  const attack = targets
    ? `${settings.attack} on ${plural(targets.length, "target")}`
    : settings.attack;
  const head = h(
    "section",
    { class: "card", "aria-label": "What came of it" },
    h("h2", {}, "Score"),
    h(
      "p",
      {},
      `${count(settings.users)} genuine and ${count(settings.malicious_users)} malicious users (${attack}) reported over ${settings.dataset} with ${settings.protocol}, ε = ${number(settings.epsilon)}.`,
    ),
    h(
      "ul",
      {},
      rows
        .filter((row) => row.name !== "genuine")
        .map((row) => h("li", {}, h("strong", {}, row.name), `: ${row.says}`)),
    ),
    h(
      "p",
      {},
      "The round: ",
      h(
        "a",
        {
          href: link(["rounds", round], {
            targets: targets?.join(","),
            with: "norm-sub",
            eta: settings.eta,
            forged: FORGED.find((share) => share >= settings.beta),
          }),
        },
        round,
      ),
      ". ",
      h(
        "button",
        { type: "button", class: "small", onclick: () => keepTruth(items, columns.true, round) },
        "Truth as CSV",
      ),
      h("span", { class: "quiet" }, " to load there: the page of the round then compares with it."),
    ),
    notes(rows),
  );

  const scored = rows.filter((row) => row.mse !== null);
  const errors = frame({
    title: "Mean squared error against the truth",
    name: `drill-${round}-mse`,
    signal,
    tableOpen: true,
  });
  const drawErrors = bars(errors, signal);
  const gains =
    targets && frame({ title: "Frequency gain of the targets", name: `drill-${round}-fg`, signal });
  const drawGains = gains && bars(gains, signal);
  const estimates = frame({
    title: "Estimates beside the truth",
    name: `drill-${round}-estimates`,
    signal,
  });
  const drawEstimates = dots(estimates, signal);
  const shown = h(
    "select",
    { onchange: () => drawItems() },
    Object.keys(columns)
      .filter((name) => !["true", "genuine", "poisoned"].includes(name))
      .map((name) => h("option", { value: name }, name)),
  );
  shown.value = best(scored);
  estimates.plot.before(h("label", { class: "field" }, h("span", {}, "Recovery shown"), shown));
  const chosen = new Set(targets ?? []);
  const order = items
    .map((_, i) => i)
    .sort((a, b) => chosen.has(b) - chosen.has(a) || columns.true[b] - columns.true[a]);
  const certified = certificates(result, `drill-${round}-certified`, signal);
  fill(place, head, errors.root, gains?.root, estimates.root, certified.root);

  const colourOf = (row) => COLOURS[row.name] ?? "recovered";
  drawErrors({
    rows: scored.map((row) => ({
      label: row.name,
      value: row.mse,
      text: number(row.mse),
      colour: colourOf(row),
    })),
    log: true,
  });
  const [before, floor] = [
    scored.find((row) => row.name === "poisoned").mse,
    scored.find((row) => row.name === "genuine").mse,
  ];
  errors.describe(
    `The attack takes the error from ${number(floor)} to ${number(before)}; ${best(scored)} brings it to ${number(scored.find((row) => row.name === best(scored)).mse)}. The axis is logarithmic.`,
  );
  errors.setTable(
    [
      { title: "Estimate", value: (row) => row.name, kind: "text" },
      { title: "MSE", value: (row) => row.mse, text: (value) => number(value), kind: "number" },
      ...(targets
        ? [{ title: "FG", value: (row) => row.fg, text: (value) => number(value), kind: "number" }]
        : []),
      {
        title: "Times better than projection",
        value: (row) => row.times,
        text: (value) => number(value),
        kind: "number",
      },
    ],
    rows,
  );
  if (gains) {
    drawGains({
      rows: scored.map((row) => ({
        label: row.name,
        value: row.fg,
        text: change(row.fg),
        colour: colourOf(row),
      })),
      log: false,
    });
    gains.describe(
      "How far all targets together stand above the estimate without the attack; 0 undoes the attack, and below 0 the recovery takes from them.",
    );
    gains.setTable(
      [
        { title: "Estimate", value: (row) => row.name, kind: "text" },
        { title: "FG", value: (row) => row.fg, text: (value) => change(value), kind: "number" },
      ],
      scored,
    );
  }
  drawItems();
  certified.draw(order);

  function drawItems() {
    const name = shown.value;
    const series = [
      { name: "poisoned", colour: "poisoned", mark: "square", values: columns.poisoned },
      { name, colour: SERIES[0], mark: "dot", values: columns[name] },
      { name: "truth", colour: "truth", mark: "tick", values: columns.true },
    ];
    const describeItem = (i) =>
      `${items[i]}: ${series.map((each) => `${each.name} ${frequency(each.values[i])}`).join(", ")}`;
    drawEstimates({ labels: items, order, series, chosen, describeItem });
    estimates.describe(
      `${targets ? "Targets first, then the" : "The"} most frequent first: ${plural(items.length, "item")}, poisoned, by ${name}, and the truth.`,
    );
    estimates.setTable(
      [
        { title: "Item", value: (i) => items[i], kind: "text" },
        ...(targets
          ? [{ title: "Target", value: (i) => (chosen.has(i) ? "yes" : ""), kind: "narrow" }]
          : []),
        ...Object.entries(columns).map(([title, values]) => ({
          title,
          value: (i) => values[i],
          text: (value) => frequency(value),
          kind: "number",
        })),
      ],
      order,
    );
  }
}

function best(scored) {
  const methods = scored.filter((row) => !["genuine", "poisoned"].includes(row.name));
  return methods.reduce((least, row) => (row.mse < least.mse ? row : least)).name;
}

function notes(rows) {
  const said = rows.filter((row) => row.notes.length);
  if (!said.length) return null;
  return h(
    "details",
    {},
    h("summary", {}, "What the methods say of themselves"),
    said.map((row) => [
      h("h3", {}, row.name),
      h(
        "ul",
        {},
        row.notes.map((note) => h("li", {}, note)),
      ),
    ]),
  );
}

function keepTruth(items, truth, round) {
  const columns = [
    { title: "label", value: (i) => items[i] },
    { title: "frequency", value: (i) => truth[i] },
  ];
  downloadCsv(`truth-${round}`, columns, items.keys());
}
