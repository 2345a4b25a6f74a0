// Tables of any length: all rows of a short one; of a long one those that are in view.

import { fill, h } from "../dom.js";
import { rem } from "./colours.js";

const SHORT = 60;
const LINE = 32; // CSS pixels at the usual size of text; app.css has the same
const SPARE = 6; // rows beyond those in view

/**
 * Make a table of columns `{title, value(row), text(value, row), kind, node(row), onSort, sorted}` and rows.
 *
 * `kind` is "text", "number" or "narrow"; `node` gives an element for the cell in place of a text; `isChosen(row)` marks
 * rows. Given the `old` table of the same columns it is used again, where that is a long one, and keeps its place.
 */
export function table({ columns, rows, caption, signal, old = null, isChosen = () => false, height = 420, long = rows.length > SHORT }) {
  if (!long) return { root: shortTable(columns, rows, caption, isChosen), set: null };
  if (old?.set && old.titles === titles(columns)) {
    old.set(columns, rows, isChosen);
    return old;
  }
  return longTable(columns, rows, caption, signal, isChosen, height);
}

const titles = (columns) => columns.map((column) => column.title).join("\n");

function content(column, row) {
  if (column.node) return column.node(row);
  const value = column.value(row);
  return column.text ? column.text(value, row) : String(value ?? "–");
}

function heading(column) {
  if (!column.onSort) return column.title;
  const arrow = column.sorted ? ` ${column.sorted === "ascending" ? "▲" : "▼"}` : "";
  return h("button", { type: "button", onclick: column.onSort }, `${column.title}${arrow}`);
}

function shortTable(columns, rows, caption, isChosen) {
  const kind = (column) => (column.kind === "number" ? "number" : "label");
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Table: ${caption}` },
    h("table", {},
      h("caption", { class: "hidden" }, caption),
      h("thead", {}, h("tr", {}, columns.map((column) => h("th", { scope: "col", class: kind(column), "aria-sort": column.sorted }, heading(column))))),
      h("tbody", {}, rows.map((row) => h("tr", { class: isChosen(row) ? "chosen" : null }, columns.map((column) => h("td", { class: kind(column) }, content(column, row))))))));
}

function longTable(columns, rows, caption, signal, isChosen, height) {
  const line = LINE * rem();
  const head = h("div", { class: "line head", role: "row", "aria-rowindex": 1 });
  const body = h("div", { role: "rowgroup" });
  const space = h("div", {});
  const root = h("div", { class: "rows", role: "table", "aria-label": caption, tabindex: "0" }, h("div", { role: "rowgroup" }, head), space, body);
  const cell = (column) => `cell ${column.kind === "number" ? "" : (column.kind ?? "text")}`;
  let drawn = [];
  let first = -1;

  const draw = (anew) => {
    const from = Math.max(0, Math.floor(root.scrollTop / line) - SPARE);
    if (!anew && from === first) return;
    const to = Math.min(rows.length, from + Math.ceil(height / line) + 2 * SPARE);
    // Rows that stay in view stay the same elements, so that what has the focus keeps it.
    const kept = new Map(anew ? [] : drawn.map((each) => [each.index, each]));
    drawn = [];
    for (let index = from; index < to; index++) {
      let each = kept.get(index);
      if (!each) {
        const row = rows[index];
        const element = h("div", { class: isChosen(row) ? "line chosen" : "line", role: "row", "aria-rowindex": index + 2 },
          columns.map((column) => h("div", { class: cell(column), role: "cell", title: column.kind === "text" ? String(column.value(row)) : null }, content(column, row))));
        element.style.top = `${(index + 1) * line}px`;
        each = { index, element };
      }
      kept.delete(index);
      drawn.push(each);
    }
    first = from;
    const focused = body.contains(document.activeElement) ? document.activeElement.closest(".line")?.getAttribute("aria-rowindex") : null;
    const control = focused && document.activeElement.tagName.toLowerCase();
    body.replaceChildren(...drawn.map((each) => each.element));
    if (focused && document.activeElement === document.body) {
      const again = drawn.find((each) => String(each.index + 2) === focused);
      (again?.element.querySelector(control) ?? root).focus({ preventScroll: true });
    }
  };

  const self = {
    root,
    titles: titles(columns),
    set(newColumns, newRows, newIsChosen = isChosen) {
      [columns, rows, isChosen] = [newColumns, newRows, newIsChosen];
      fill(head, columns.map((column) => h("div", { class: cell(column), role: "columnheader", "aria-sort": column.sorted ?? null }, heading(column))));
      root.setAttribute("aria-rowcount", rows.length + 1);
      root.style.height = `${Math.min(height, (rows.length + 1) * line + 18)}px`;
      space.style.height = `${rows.length * line}px`;
      draw(true);
    },
  };
  root.addEventListener("scroll", () => draw(false), { passive: true, signal });
  self.set(columns, rows);
  return self;
}
