// A map of numbers around 1: blue above, orange below, and each number written in its cell.

import { colour, font, onTheme, rem } from "/page/js/chart/colours.js";
import { h } from "/page/js/dom.js";
import { number } from "/page/js/format.js";

const CELL = [56, 28];
const HEAD = 128; // for the vertical names of the columns
const LABELS = 104;
const FULL = Math.log(16); // at 16 times, and at 1/16, a colour is full

/** Make the map in a frame. The returned function draws `{rows, columns, values, describe(row, column)}`; null is an empty cell. */
export function heat(frame, signal) {
  const canvas = h("canvas");
  const holder = h(
    "div",
    { class: "scroll", tabindex: "0", role: "group", "aria-label": "The map; scroll for more" },
    canvas,
  );
  const hint = h("p", { class: "quiet mono" }, "\u00a0");
  frame.plot.append(holder, hint);
  let what = null;

  const sizes = () => ({
    wide: CELL[0] * rem(),
    high: CELL[1] * rem(),
    head: HEAD * rem(),
    left: LABELS * rem(),
  });
  function draw(next) {
    what = next ?? what;
    if (!what || signal.aborted) return;
    frame.setLegend([
      { name: "better than the projection", colour: "recovered", mark: "bar" },
      { name: "worse", colour: "poisoned", mark: "bar" },
    ]);
    paint(canvas, what, sizes(), devicePixelRatio || 1);
  }
  canvas.addEventListener("mousemove", (event) => {
    if (!what) return;
    const { wide, high, head, left } = sizes();
    const box = canvas.getBoundingClientRect();
    const [row, column] = [
      Math.floor((event.clientY - box.top - head) / high),
      Math.floor((event.clientX - box.left - left) / wide),
    ];
    hint.textContent =
      what.values[row]?.[column] === undefined ? "\u00a0" : what.describe(row, column);
  });
  onTheme(() => draw(), signal);
  frame.picture = () => {
    if (!what) return null;
    const drawn = document.createElement("canvas");
    paint(drawn, what, sizes(), 2);
    return drawn;
  };
  return draw;
}

function paint(canvas, { rows, columns, values }, { wide, high, head, left }, scale) {
  const [width, height] = [left + columns.length * wide + 24, head + rows.length * high + 2];
  [canvas.width, canvas.height] = [Math.round(width * scale), Math.round(height * scale)];
  [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.fillStyle = colour("paper");
  pen.fillRect(0, 0, width, height);
  pen.font = font();
  pen.textBaseline = "middle";
  pen.fillStyle = colour("ink");
  columns.forEach((name, k) => {
    pen.save();
    pen.translate(left + (k + 0.5) * wide, head - 6);
    pen.rotate(-Math.PI / 2);
    pen.fillText(name, 0, 0, head - 10);
    pen.restore();
  });
  rows.forEach((name, i) => {
    const y = head + (i + 0.5) * high;
    pen.fillStyle = colour("ink");
    pen.textAlign = "right";
    pen.fillText(name, left - 8, y, left - 10);
    pen.textAlign = "center";
    values[i].forEach((value, k) => {
      const x = left + k * wide;
      const shade = value === null ? null : mixed(value);
      if (shade) {
        pen.fillStyle = `rgb(${shade.join(", ")})`;
        pen.fillRect(x + 0.5, y - high / 2 + 0.5, wide - 1, high - 1);
      }
      pen.fillStyle = shade ? legible(shade) : colour("quiet");
      pen.fillText(
        value === null ? "–" : number(value, value < 10 ? 2 : 3),
        x + wide / 2,
        y,
        wide - 4,
      );
    });
  });
}

const parts = (name) =>
  colour(name)
    .match(/[\d.]+/g)
    .slice(0, 3)
    .map(Number);

/** The colour of a value: the background's at 1, and further away the stronger. */
function mixed(value) {
  const strength = Math.min(1, Math.abs(Math.log(Math.max(value, 1e-9))) / FULL);
  const [paper, full] = [parts("paper"), parts(value >= 1 ? "recovered" : "poisoned")];
  return paper.map((each, i) => Math.round(each + (full[i] - each) * strength));
}

/** Black or white, whichever has the larger contrast on this colour (WCAG 2, relative luminance). */
function legible(rgb) {
  const [r, g, b] = rgb
    .map((each) => each / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff";
}
