// The items of a document in a chart and a table.

import { dots } from "../chart/dots.js";
import { frame, numeric } from "../chart/frame.js";
import { field, h } from "../dom.js";
import { change, count, frequency, isolated } from "../format.js";
import { bestEstimate, caption, collected, errorBars, others } from "../round/items.js";

/** Show the chart below an element, with the `best` recovery and the items that are `raised`. */
export function frequencies(place, data, best, raised, signal) {
  const { items, frequencies: reported, canaries, notes = [], n } = data.frequencies;
  const { collectedBar } = errorBars(data.frequencies, null);
  const all = items.map((_, i) => i);
  const targets = new Set(data.recoveries.flatMap((each) => each.targets));
  const rest = data.recoveries.filter((each) => each !== best);
  const series = [
    ...(best ? [{ ...bestEstimate(best), name: `best estimate, ${best.method}` }] : []),
    collected(data.frequencies),
    ...others(rest.map((answer) => ({ name: answer.method, answer }))),
  ];
  const first = series[0].values;
  const orders = {
    "best estimate": (a, b) => first[b] - first[a],
    "as collected": (a, b) => reported[b] - reported[a],
    "change by recovery": (a, b) =>
      Math.abs(first[b] - reported[b]) - Math.abs(first[a] - reported[a]),
    "order of the round": (a, b) => a - b,
  };
  const on = new Set(series.slice(0, 2).map((each) => each.name));
  const chart = frame({
    title: "Share of users by item",
    name: `${data.round.name}-frequencies`,
    signal,
    caption: () => caption(data.round, n),
  });
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
        checked: on.has(each.name),
        onchange: (event) => switchTo(each.name, event.target.checked),
      }),
      ` ${each.name}`,
    ),
  );
  chart.plot.before(
    h(
      "div",
      { class: "controls" },
      field("Sort by", sort),
      field("Find", search),
      h("div", { class: "row", role: "group", "aria-label": "Shown" }, boxes),
    ),
  );
  place.append(chart.root);

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
    const mark = { name: "raised by fake reports", colour: "bad", mark: "raised", values: [] };
    draw({
      labels: items,
      order,
      series: raised.length ? [...shown, mark] : shown,
      raised: new Set(raised),
      chosen: targets,
      text: shown.length ? (i) => frequency(shown[0].values[i]) : null,
      describeItem: (i) =>
        `${isolated(items[i])}: ${shown.map((each) => `${each.name} ${frequency(each.values[i])}`).join(", ")}`,
    });
    const chosen = targets.size ? ` ${count(targets.size)} of them were named as targets.` : "";
    chart.describe(
      `${count(order.length)} of ${count(items.length)} items. Lines hold at 95 %; as collected ± ${frequency(collectedBar)} if every report is honest.${chosen}${notes.map((note) => ` ${note}`).join("")}`,
    );
    chart.setTable(columns(shown), order);
  }

  function columns(shown) {
    const marked = (label, i) =>
      label + (canaries?.includes(i) ? " (canary)" : "") + (targets.has(i) ? " (target)" : "");
    const of = (title, values, text = frequency) => numeric(title, (i) => values[i], text);
    return [
      { title: "Item", kind: "text", value: (i) => items[i], text: marked },
      ...shown.map((each) => of(each.name, each.values)),
      ...shown
        .filter((each) => each.values !== reported)
        .map((each) =>
          of(
            `change: ${each.name}`,
            each.values.map((value, i) => value - reported[i]),
            change,
          ),
        ),
    ];
  }

  show();
}
