// Tables of any length; of a long table only the rows in view exist.

import { fill, h } from "../dom.js";
import { isPaper, onTheme, rem } from "./colours.js";

const SHORT = 60;
const LINE = 32; // CSS pixels at the default text size, as in app.css
const HEIGHT = 420; // of a long table
const SPARE = 6; // rows beyond those in view

/**
 * Make a table of columns `{title, value(row), text(value, row), kind, node(row, old)}` and rows.
 *
 * `kind` is "text", "number" or "narrow"; `node(row, old)` gives an element for the cell in place of a text, the old one
 * changed if it exists; `isChosen(row)` marks rows. Given the `old` table of the same columns it is used again, where that is a long one, and keeps its place.
 */
export function table({
  columns,
  rows,
  caption,
  signal,
  old = null,
  isChosen = () => false,
  long = rows.length > SHORT,
}) {
  if (!long) return { root: shortTable(columns, rows, caption, isChosen), set: null };
  if (old?.set && old.titles === titles(columns)) {
    old.set(columns, rows, isChosen);
    return old;
  }
  return longTable(columns, rows, caption, signal, isChosen);
}

const titles = (columns) => columns.map((column) => column.title).join("\n");

function content(column, row) {
  if (column.node) return column.node(row);
  const value = column.value(row);
  return column.text ? column.text(value, row) : String(value ?? "–");
}

function shortTable(columns, rows, caption, isChosen) {
  const kind = (column) => (column.kind === "number" ? "number" : "label");
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": `Table: ${caption}` },
    h(
      "table",
      {},
      h("caption", { class: "hidden" }, caption),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          columns.map((column) => h("th", { scope: "col", class: kind(column) }, column.title)),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map((row) =>
          h(
            "tr",
            { class: isChosen(row) ? "chosen" : null },
            columns.map((column) => h("td", { class: kind(column) }, content(column, row))),
          ),
        ),
      ),
    ),
  );
}

function longTable(columns, rows, caption, signal, isChosen) {
  const line = LINE * rem();
  const head = h("div", { class: "line head", role: "row", "aria-rowindex": 1 });
  const body = h("div", { role: "rowgroup" });
  const space = h("div", { class: "space" });
  const root = h(
    "div",
    { class: "rows", role: "table", "aria-label": caption, tabindex: "0" },
    h("div", { role: "rowgroup" }, head),
    space,
    body,
  );
  const cell = (column) => `cell ${column.kind === "number" ? "" : (column.kind ?? "text")}`;
  fill(
    head,
    columns.map((column) => h("div", { class: cell(column), role: "columnheader" }, column.title)),
  );
  const drawn = new Map(); // by index
  let first = -1;

  /** Update the element of a row in place, so a focused element keeps the focus. */
  const write = (element, index) => {
    const row = rows[index];
    element.classList.toggle("chosen", isChosen(row));
    columns.forEach((column, k) => {
      const place = element.children[k];
      if (column.node) {
        const [old] = place.children;
        const made = column.node(row, old);
        if (made !== old) fill(place, made);
        return;
      }
      const text = content(column, row);
      if (place.textContent === text) return;
      place.textContent = text;
      if (column.kind === "text") place.title = text;
    });
  };

  const draw = (anew) => {
    const from = isPaper() ? 0 : Math.max(0, Math.floor(root.scrollTop / line) - SPARE);
    if (!anew && from === first) return;
    first = from;
    const seen = isPaper() ? rows.length : Math.ceil(HEIGHT / line) + 2 * SPARE;
    const to = Math.min(rows.length, from + seen);
    for (const [index, element] of drawn) {
      if (index < from || index >= to) {
        element.remove();
        drawn.delete(index);
      }
    }
    let next = null; // in order, for screen readers
    for (let index = to - 1; index >= from; index--) {
      let element = drawn.get(index);
      if (!element) {
        element = h(
          "div",
          { class: "line", role: "row", "aria-rowindex": index + 2 },
          columns.map((column) => h("div", { class: cell(column), role: "cell" })),
        );
        element.style.top = `${(index + 1) * line}px`;
        drawn.set(index, element);
        body.insertBefore(element, next);
        write(element, index);
      } else if (anew) write(element, index);
      next = element;
    }
  };

  const self = {
    root,
    titles: titles(columns),
    set(newColumns, newRows, newIsChosen = isChosen) {
      [columns, rows, isChosen] = [newColumns, newRows, newIsChosen];
      root.setAttribute("aria-rowcount", rows.length + 1);
      root.style.height = `${Math.min(HEIGHT, (rows.length + 1) * line + 18)}px`;
      space.style.height = `${rows.length * line}px`;
      draw(true);
    },
  };
  root.addEventListener("scroll", () => draw(false), { passive: true, signal });
  onTheme(() => draw(true), signal);
  self.set(columns, rows);
  return self;
}
