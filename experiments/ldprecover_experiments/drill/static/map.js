// The map of all attacks and methods: improvement over the projection alone, as a factor.

import { frame } from "/page/js/chart/frame.js";
import { fill, h } from "/page/js/dom.js";
import { count, number, plural } from "/page/js/format.js";

import { heat } from "./heat.js";

const NAMES = { poisoned: "no recovery" };

/** Show the map in an element. */
export function showMap(place, { settings, result }, signal) {
  const methods = result.methods.filter((name) => name !== result.basis);
  const { rows } = result;
  const chart = frame({
    title: "Times better than the projection alone",
    name: `drill-map-${settings.dataset}-${settings.protocol}`,
    signal,
  });
  const draw = heat(chart, signal);
  const level = settings.reports
    ? "every report was made"
    : "counts were drawn, and methods that need the reports are left out";
  fill(
    place,
    h(
      "section",
      { class: "card", "aria-label": "What was played" },
      h("h2", {}, "All attacks"),
      h(
        "p",
        {},
        `${count(settings.users)} genuine and ${count(settings.malicious_users)} malicious users over ${settings.dataset} with ${settings.protocol}, ε = ${number(settings.epsilon)}, ${plural(settings.trials, "trial")} of each attack; ${level}.`,
      ),
      h(
        "p",
        {},
        "A cell is the mean squared error of the projection alone over the method's: above 1 the method is better, below 1 the projection is. The row “none” shows what a method costs where nobody attacks. A method whose name ends in * or “targets” is told the targets; where an attack has none, the items that rose most.",
      ),
    ),
    chart.root,
  );
  draw({
    rows: rows.map((row) => row.attack),
    columns: methods.map((name) => NAMES[name] ?? name),
    values: rows.map((row) => methods.map((name) => row.cells[name]?.times ?? null)),
    describe: (i, k) => words(rows[i], methods[k]),
  });
  const best = methods
    .map((name) => [name, mean(rows.map((row) => row.cells[name]?.times))])
    .reduce((a, b) => (b[1] > a[1] ? b : a));
  chart.describe(
    `${plural(rows.length, "attack")} against ${plural(methods.length, "method")}. On the geometric mean over the attacks ${NAMES[best[0]] ?? best[0]} is best, at ${number(best[1])} times.`,
  );
  chart.setTable(
    [
      { title: "Attack", value: (row) => row.attack, kind: "text" },
      { title: "Played as", value: (row) => row.played, kind: "text" },
      {
        title: "MSE of the projection",
        value: (row) => row.cells[result.basis]?.mse ?? null,
        text: (value) => number(value),
        kind: "number",
      },
      ...methods.map((name) => ({
        title: NAMES[name] ?? name,
        value: (row) => row.cells[name]?.times ?? null,
        text: (value) => number(value),
        kind: "number",
      })),
    ],
    rows,
  );
  const refused = rows.flatMap((row) =>
    methods
      .filter((name) => row.cells[name]?.refused)
      .map((name) => `${row.attack}, ${NAMES[name] ?? name}: ${row.cells[name].refused}`),
  );
  if (refused.length)
    place.append(
      h(
        "details",
        { class: "card" },
        h("summary", {}, `${plural(refused.length, "cell")} without a number`),
        h(
          "ul",
          {},
          refused.map((each) => h("li", {}, each)),
        ),
      ),
    );
}

/** The geometric mean; null if a number is missing. */
function mean(values) {
  if (!values.length || values.some((value) => !(value > 0))) return 0;
  return Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);
}

function words(row, name) {
  const cell = row.cells[name];
  const where = `${row.attack}, ${NAMES[name] ?? name}`;
  if (cell?.times === null || cell === undefined)
    return `${where}: ${cell?.refused ?? "no number"}`;
  return `${where}: ${number(cell.times)} times, MSE ${number(cell.mse)}`;
}
