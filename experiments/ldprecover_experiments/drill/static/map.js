// The map of all attacks and methods: how many times better than the projection alone.

import { downloadCsv } from "/page/js/chart/csv.js";
import { fill, h } from "/page/js/dom.js";
import { plural } from "/page/js/format.js";

import { times } from "./words.js";

const FULL = Math.log(16); // the logarithm of the ratio at which a colour is full
const BASIS = "norm-sub";

/** Show the map in an element. */
export function showMap(place, { settings, result }) {
  const isPlayed = (row) => row.cells[BASIS].mse !== null;
  const rows = result.rows.filter(isPlayed);
  const columns = result.columns.filter((column) => column.method !== BASIS);
  const same = result.columns.find((column) => column.method === BASIS)?.names.slice(1) ?? [];
  const level = settings.reports
    ? "every report was made"
    : "counts were drawn, without methods that read reports";
  const refused = result.rows
    .filter((row) => !isPlayed(row))
    .map((row) => `Not played: ${row.title}. ${row.cells[BASIS].refused}`);
  for (const row of rows)
    for (const { method, names } of columns)
      if (row.cells[method]?.refused)
        refused.push(`${row.title}, ${names[0]}: ${row.cells[method].refused}`);
  const keep = () =>
    downloadCsv(
      `drill-map-${settings.dataset}-${settings.protocol}`,
      [
        { title: "attack", value: (row) => row.title },
        { title: "played", value: (row) => row.played },
        { title: "mse of the projection", value: (row) => row.cells[BASIS].mse },
        ...columns.map(({ method, names }) => ({
          title: names.join(" = "),
          value: (row) => row.cells[method]?.times,
        })),
      ],
      rows,
    );
  fill(
    place,
    h(
      "section",
      { class: "card", "aria-label": "Verdict" },
      h("h2", { class: "drill-verdict", tabindex: "-1" }, result.headline),
      h(
        "p",
        {},
        `${result.detail} ${plural(rows.length, "attack")}, ${plural(settings.trials, "trial")} each; ${level}.`,
      ),
    ),
    h(
      "section",
      { class: "card", "aria-label": "The map" },
      h("h2", {}, "Times better than projection alone"),
      h(
        "p",
        { class: "quiet" },
        "Above 1× the method is better, below 1× the projection is. A method that is told the targets of an attack without any is told the items that rose most.",
        same.length ? ` The same as projection alone: ${same.join(", ")}.` : "",
      ),
      table(rows, columns),
      h("p", {}, h("button", { type: "button", class: "small", onclick: keep }, "CSV")),
    ),
    refused.length > 0 &&
      h(
        "details",
        { class: "card" },
        h("summary", {}, `${plural(refused.length, "reason")} why a number is missing`),
        h(
          "ul",
          {},
          refused.map((each) => h("li", {}, each)),
        ),
      ),
  );
}

function table(rows, columns) {
  const head = (name) => h("th", { scope: "col" }, h("span", {}, name));
  const line = (title, ratios) => h("tr", {}, h("th", { scope: "row" }, title), ratios.map(cell));
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "The map; scroll for more" },
    h(
      "table",
      { class: "drill-map" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", { scope: "col" }, "Attack"),
          columns.map(({ names }) => head(names.join(" = "))),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map((row) =>
          line(
            row.title,
            columns.map(({ method }) => row.cells[method]?.times ?? null),
          ),
        ),
      ),
      h(
        "tbody",
        {},
        line(
          "on average",
          columns.map(({ mean }) => mean),
        ),
      ),
    ),
  );
}

/** A number on a colour: blue above 1, orange below, and the further away the stronger. */
function cell(ratio) {
  const element = h("td", { class: ratio >= 1 ? "better" : "worse" }, times(ratio));
  const distance = ratio ? Math.abs(Math.log(ratio)) / FULL : 0;
  element.style.setProperty("--strength", Math.min(1, distance));
  return element;
}
