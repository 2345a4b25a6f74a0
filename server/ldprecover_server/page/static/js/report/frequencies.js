// Collected and recovered frequencies of all items, in a chart and a table.

import { dots } from "../chart/dots.js";
import { frame } from "../chart/frame.js";
import { field, h } from "../dom.js";
import { change, count, frequency, number } from "../format.js";

const Z = 1.96; // standard errors on each side of a 95 % interval
const LOOKS = [
  ["recovered", "square"],
  ["second", "diamond"],
  ["third", "ring"],
  ["target", "dot"],
  ["fourth", "square"],
];

/** Show the chart below an element. */
export function frequencies(place, data, signal) {
  const {
    items,
    frequencies: poisoned,
    standard_errors: errors,
    sum,
    canaries,
    notes = [],
  } = data.frequencies;
  const all = items.map((_, i) => i);
  const targets = new Set(data.recoveries.flatMap((each) => each.targets));
  const series = [
    {
      name: "poisoned",
      colour: "poisoned",
      mark: "dot",
      values: poisoned,
      low: poisoned.map((f, i) => f - Z * errors[i]),
      high: poisoned.map((f, i) => f + Z * errors[i]),
    },
    ...data.recoveries.map((each, i) => seriesOf(each, i)),
  ];
  const orders = {
    frequency: (a, b) => poisoned[b] - poisoned[a],
    ...Object.fromEntries(
      data.recoveries.map((each) => [
        `change by ${each.method}`,
        (a, b) =>
          Math.abs(each.recovered[b] - poisoned[b]) - Math.abs(each.recovered[a] - poisoned[a]),
      ]),
    ),
    "order of the round": (a, b) => a - b,
  };
  const on = new Set(series.map((each) => each.name));
  const chart = frame({ title: "Frequencies", name: `${data.round.name}-frequencies`, signal });
  const draw = dots(chart, signal);
  const sort = h(
    "select",
    { onchange: show },
    Object.keys(orders).map((name) => h("option", {}, name)),
  );
  const search = h("input", { type: "search", oninput: show });
  const boxes = series.map((each) =>
    h(
      "label",
      {},
      h("input", {
        type: "checkbox",
        checked: true,
        onchange: (event) => switchTo(each.name, event.target.checked),
      }),
      ` ${each.name}`,
    ),
  );
  place.append(
    h(
      "div",
      { class: "controls" },
      field("Sorted by", sort),
      field("Find", search),
      h("div", { class: "row", role: "group", "aria-label": "Shown" }, boxes),
    ),
    chart.root,
  );

  function switchTo(name, shown) {
    if (shown) on.add(name);
    else on.delete(name);
    show();
  }

  function show() {
    const wanted = search.value.trim().toLowerCase();
    const order = all
      .filter((i) => items[i].toLowerCase().includes(wanted))
      .sort(orders[sort.value]);
    const shown = series.filter((each) => on.has(each.name));
    draw({
      labels: items,
      order,
      series: shown,
      chosen: targets,
      describeItem: (i) =>
        `${items[i]}: ${shown.map((each) => `${each.name} ${frequency(each.values[i])}`).join(", ")}`,
    });
    const chosen = targets.size ? ` ${count(targets.size)} of them were named as targets.` : "";
    chart.describe(
      `${count(order.length)} of ${count(items.length)} items; whiskers are intervals at 95 %, which hold if every report is honest. The poisoned estimates add up to ${number(sum, 4)}, where 1 is expected of honest reports.${chosen}${notes.map((note) => ` ${note}`).join("")}`,
    );
    chart.setTable(columns(shown), order);
  }

  function columns(shown) {
    return [
      {
        title: "Item",
        kind: "text",
        value: (i) => items[i],
        text: (label, i) =>
          label + (canaries?.includes(i) ? " (canary)" : "") + (targets.has(i) ? " (target)" : ""),
      },
      ...shown.map((each) => ({
        title: each.name,
        kind: "number",
        value: (i) => each.values[i],
        text: frequency,
      })),
      { title: "± 95 %", kind: "number", value: (i) => Z * errors[i], text: frequency },
      ...shown.slice(1).map((each) => ({
        title: `change: ${each.name}`,
        kind: "number",
        value: (i) => each.values[i] - poisoned[i],
        text: change,
      })),
    ];
  }

  show();
}

function seriesOf(recovery, i) {
  const [colour, mark] = LOOKS[i % LOOKS.length];
  const { lower = null, upper = null } = recovery.conclusions ?? {};
  return {
    name: recovery.method,
    colour,
    mark,
    values: recovery.recovered,
    low: lower,
    high: upper,
  };
}
