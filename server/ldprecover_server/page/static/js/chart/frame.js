// The frame of every chart: title, legend, a table of the same numbers, and downloads.

import { action, fill, h } from "../dom.js";
import { day } from "../format.js";
import { colour, font, onTheme } from "./colours.js";
import { mark, sign } from "./marks.js";

/** A column of numbers of a table: `value(row)`, and `text(value, row)` shows it; `name` is its title in CSV. */
export function numeric(title, value, text, name = title) {
  return { title, name, kind: "number", value, text };
}

/**
 * Make the frame of a chart, a figure. `name` is that of downloaded files, `caption()` the second line of the PNG, by
 * default the date; `tableOpen` shows the table.
 *
 * The caller puts a canvas into `plot`, calls `describe` and `setTable`, and sets `picture` to a function
 * that returns a canvas for the PNG.
 */
export function frame({ title, name, signal, tableOpen = false, caption = () => day(new Date()) }) {
  const legend = h("ul", { class: "legend" });
  const plot = h("div", { class: "chart" });
  const summary = h("p", { class: "quiet" });
  const place = h("div", {});
  const details = h(
    "details",
    { open: tableOpen },
    h("summary", {}, `${title}: the numbers`),
    place,
  );
  let columns = [];
  let rows = [];
  let options = {};
  let marks = [];
  let shown = null;
  let stale = true;

  const showTable = async () => {
    if (!details.open || !stale) return;
    const { table } = await import("./table.js"); // few viewers open it
    if (!stale) return;
    stale = false;
    const next = table({ columns, rows, caption: title, signal, old: shown, ...options });
    if (next !== shown) fill(place, next.root);
    shown = next;
  };
  details.addEventListener("toggle", showTable);

  // Disabled until there are numbers, and while further ones are on their way.
  const downloads = [
    [
      "CSV",
      async () =>
        (await import("./csv.js")).downloadCsv(name, [...columns, ...(options.extra ?? [])], rows),
    ],
    ["PNG", save],
  ].map(([kind, onclick]) =>
    action(kind, onclick, { class: "small", disabled: true, "aria-label": `${kind}: ${title}` }),
  );

  const self = {
    plot,
    picture: null,
    root: h(
      "figure",
      { class: "card" },
      h("div", { class: "head" }, h("h2", {}, title), h("div", { class: "row" }, downloads)),
      legend,
      plot,
      summary,
      details,
    ),
    /** Set the sentence that describes the chart to screen readers. */
    describe(text) {
      if (summary.textContent !== text) fill(summary, text);
      self.label();
    },
    /** Give the canvases that sentence, which a chart does once it has drawn later. */
    label() {
      for (const canvas of plot.querySelectorAll("canvas")) {
        canvas.setAttribute("role", "img");
        canvas.setAttribute("aria-label", `${title}. ${summary.textContent}`);
      }
    },
    /** Set the legend: `[{name, colour, mark}]`, mark one of dot, square, diamond, ring, tick, line, band. */
    setLegend(entries) {
      marks = entries;
      fill(
        legend,
        entries.map((each) => h("li", {}, sign(each), each.name)),
      );
    },
    /** Set the table's columns `{title, value(row), text(value, row), kind}` and rows, and options of `table`.
     * `extra` columns `{name, value(row)}` are in the CSV alone. While more columns are `pending` nothing can be downloaded. */
    setTable(newColumns, newRows, { pending = false, ...newOptions } = {}) {
      [columns, rows, options, stale] = [newColumns, newRows, newOptions, true];
      for (const button of downloads) button.disabled = pending;
      showTable();
    },
  };

  async function save() {
    const { download } = await import("./csv.js");
    const drawn = self.picture?.();
    if (!drawn) return;
    const scale = drawn.width / (parseFloat(drawn.style.width) || drawn.width);
    const head = 72 * scale;
    const whole = document.createElement("canvas");
    whole.width = drawn.width;
    whole.height = drawn.height + head;
    const pen = whole.getContext("2d");
    pen.fillStyle = colour("paper");
    pen.fillRect(0, 0, whole.width, whole.height);
    pen.drawImage(drawn, 0, head);
    pen.scale(scale, scale);
    pen.fillStyle = colour("ink");
    pen.font = `600 ${font(15)}`;
    pen.fillText(title, 8, 20);
    pen.font = font();
    pen.fillText(caption(), 8, 40);
    let x = 8;
    for (const each of marks) {
      pen.strokeStyle = colour(each.colour);
      pen.fillStyle = colour(each.colour);
      mark(pen, each.mark ?? "line", x + 8, 57, 18);
      pen.fillStyle = colour("ink");
      pen.fillText(each.name, x + 22, 62);
      x += 40 + pen.measureText(each.name).width;
    }
    whole.toBlob((blob) => download(`${name}.png`, blob), "image/png");
  }

  onTheme(() => self.setLegend(marks), signal);
  return self;
}
