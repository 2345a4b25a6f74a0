// The errors as bars on a linear axis, a row for each estimate. A bar beyond the axis is drawn broken.

import { h } from "/page/js/dom.js";

import { points, times } from "./words.js";

const ROOM = 1.4; // length of the axis over the projection's bar

/** Make the table of the rows; `projection` is the projection's row, `best` the winner's, null without one. */
export function bars(rows, { before, after, projection, best }, hasTargets) {
  const end = Math.min(
    Math.max(...rows.map((row) => row.harm ?? 0)),
    ROOM * (projection.harm ?? 0),
  );
  const kind = (row) =>
    [
      row === before && "before",
      row === after && "after",
      row === projection && "projection",
      row === best && "best",
    ]
      .filter(Boolean)
      .join(" ");
  return h(
    "table",
    { class: "drill-bars" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", { scope: "col" }, "Estimate"),
        h("th", { scope: "col" }, "Error, times that before the attack"),
        hasTargets &&
          h("th", { scope: "col", class: "number extra" }, "Targets together, points off"),
        h("th", { scope: "col", class: "number extra" }, "Better than projection"),
      ),
    ),
    h(
      "tbody",
      {},
      rows.map((row) =>
        h(
          "tr",
          { class: kind(row) },
          h("th", { scope: "row" }, row.names.join(" = ")),
          h("td", { class: "bar-cell" }, bar(row.harm, end), times(row.harm)),
          hasTargets && h("td", { class: "number extra" }, points(row.excess)),
          h(
            "td",
            { class: "number extra" },
            row.times === null || row === projection ? "" : times(row.times),
          ),
        ),
      ),
    ),
  );
}

function bar(value, end) {
  if (value === null) return null;
  const isBroken = value > end;
  const element = h("i", { class: isBroken ? "broken" : null });
  element.style.setProperty("--share", isBroken ? 1 : value / end);
  return element;
}
