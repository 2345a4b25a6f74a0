// One row an item: dots with whiskers on a common axis. Only the items in view are drawn.

import { h } from "../dom.js";
import { number } from "../format.js";
import { colour, faded, font, isPaper, onTheme, rem } from "./colours.js";
import { mark } from "./marks.js";
import { fit, placeTip, steps, stroke, wrapped } from "./pen.js";

const ROW = 26;
const TALL_ROW = 46; // with the label above the marks
const LINE = 16; // of a label
const LETTER = 7; // about the width of one
const LABELS = [190, 300]; // widths of their column: usually, and of long ones
const NARROW = 560; // width of a chart with such rows
const AXIS = 28;
const HEIGHT = 640;
const PICTURE_ROWS = 200;
const PAPER_ROWS = 500;
const PAPER_WIDTH = 720; // CSS pixels
const BOUND = 10; // height of a certified bound
const SHEET = 20; // rows of a canvas on paper, which no page break cuts

/**
 * Make the chart in a frame. The returned function draws
 * `{labels, order, series, room, chosen, raised, gap, text(index), onChoose(index), describeItem(index)}`.
 *
 * `order` has the indices of the items to show, from the top; a series is `{name, colour, mark, size, values, low, high}`,
 * its columns by index, `low` and `high` the ends of whiskers or null; marks are dot, square, diamond, ring and tick.
 * A line joins a `joined` series to the first one. One series of the mark band has no values, and bounds the others. It does not widen the axis, which must not
 * move when the band comes later than the values; `room` is the share of the axis that is left free for it. `chosen` and `raised` are sets of indices; a
 * raised item has a triangle, and `note` tells at one of them why. Items are left out before the row `gap`. `text` gives the number at the end of a row.
 */
export function dots(frame, signal) {
  const canvas = h("canvas");
  const holder = h("div", {}, canvas);
  const space = h("div");
  const scroller = h(
    "div",
    {
      class: "rows",
      tabindex: "0",
      role: "group",
      "aria-label": "Items of the chart; scroll for more",
    },
    holder,
    space,
  );
  const tip = h("div", { class: "tip", hidden: true });
  const paper = h("div", { class: "paper" });
  frame.plot.append(scroller, paper, tip);
  Object.assign(holder.style, { position: "sticky", top: "0", height: "0", overflow: "visible" });
  canvas.style.display = "block";

  let what = null;
  let range = [0, 1];
  let longest = 0; // characters of a label
  let waiting = 0;

  const sizes = (width = scroller.clientWidth) => {
    const isNarrow = width < NARROW * rem();
    const lines = isNarrow && LETTER * rem() * (longest + 12) > width ? 2 : 1; // beside a number
    const row = isNarrow ? TALL_ROW + (lines - 1) * LINE : ROW;
    const column = Math.min(Math.max(LABELS[0], LETTER * longest), LABELS[1]) * rem();
    return { row: row * rem(), axis: AXIS * rem(), isNarrow, lines, column };
  };

  function draw(next) {
    if (next) {
      what = next;
      range = extent(what);
      longest = what.order.reduce((most, i) => Math.max(most, what.labels[i].length), 0);
      frame.setLegend(what.series);
    }
    if (!what || signal.aborted) return;
    const { row, axis } = sizes();
    const all = axis + what.order.length * row + 4;
    scroller.style.height = `${Math.min(HEIGHT * rem(), all) + 2}px`;
    space.style.height = `${all}px`;
    cancelAnimationFrame(waiting);
    waiting = 0;
    paper.replaceChildren(...(isPaper() ? sheets() : []));
    const width = scroller.clientWidth;
    const height = scroller.clientHeight;
    fit(canvas, width, height);
    paint(canvas.getContext("2d"), {
      what,
      range,
      width,
      height,
      top: scroller.scrollTop,
      ...sizes(),
    });
  }
  const soon = () => {
    waiting ||= requestAnimationFrame(() => draw());
  };

  const indexAt = (event) => {
    if (!what) return undefined;
    const { row, axis } = sizes();
    const y = event.clientY - scroller.getBoundingClientRect().top;
    return y < axis ? undefined : what.order[Math.floor((y - axis + scroller.scrollTop) / row)];
  };
  scroller.addEventListener("scroll", soon, { passive: true, signal });
  canvas.addEventListener("click", (event) => {
    const index = indexAt(event);
    if (index !== undefined) what.onChoose?.(index);
  });
  canvas.addEventListener("mousemove", (event) => {
    const index = indexAt(event);
    canvas.style.cursor = index === undefined || !what.onChoose ? "default" : "pointer";
    tip.hidden = index === undefined;
    if (tip.hidden) return;
    tip.textContent = what.describeItem(index);
    placeTip(tip, event);
  });
  canvas.addEventListener("mouseleave", () => (tip.hidden = true));
  const observer = new ResizeObserver(soon);
  observer.observe(scroller);
  signal.addEventListener("abort", () => observer.disconnect());
  onTheme(() => draw(), signal);

  /** A canvas of the rows from `first` on, at most `most`. */
  function part(first, most, width) {
    const { row, axis, ...others } = sizes(width);
    const order = what.order.slice(first, first + most);
    const drawn = document.createElement("canvas");
    const height = axis + order.length * row + 4;
    fit(drawn, width, height, 2);
    const gap = what.gap === null ? null : what.gap - first;
    const shown = {
      what: { ...what, order, gap },
      range,
      width,
      height,
      top: 0,
      row,
      axis,
      ...others,
    };
    paint(drawn.getContext("2d"), shown);
    return drawn;
  }

  const sheets = () =>
    Array.from({ length: Math.ceil(Math.min(what.order.length, PAPER_ROWS) / SHEET) }, (_, k) =>
      part(k * SHEET, SHEET, PAPER_WIDTH),
    );

  frame.picture = () => {
    const first = Math.floor(scroller.scrollTop / sizes().row);
    return what && part(first, PICTURE_ROWS, Math.max(600, scroller.clientWidth));
  };
  return draw;
}

function extent({ series, order, room = 0.03 }) {
  let [least, most] = [0, 0];
  for (const { values, low, high, mark: kind } of series) {
    if (kind === "band") continue;
    for (const index of order) {
      const [a, b] = [low ? low[index] : values[index], high ? high[index] : values[index]];
      if (a < least) least = a;
      if (b > most) most = b;
    }
  }
  const size = most - least || 1;
  return [least - (least < 0 ? 0.03 * size : 0), most + room * size];
}

function paint(pen, { what, range, width, height, top, row, axis, isNarrow, lines, column }) {
  const value = what.text ? 70 * rem() : 12;
  const text = isNarrow ? width - value : Math.min(0.34 * width, column);
  const [left, right] = isNarrow ? [20, width - 20] : [text + 10, width - value];
  const place = (value) => left + ((value - range[0]) / (range[1] - range[0])) * (right - left);
  pen.clearRect(0, 0, width, height);
  pen.fillStyle = colour("paper");
  pen.fillRect(0, 0, width, height);
  pen.font = font();
  pen.textBaseline = "middle";
  const first = Math.max(0, Math.floor(top / row));
  const last = Math.min(what.order.length, Math.ceil((top + height - axis) / row));
  const band = what.series.find((each) => each.mark === "band" && each.low);
  const marked = what.series.filter((each) => each.values.length);
  const joined = marked.find((each, k) => k > 0 && each.joined);
  const lanes = marked.filter((each) => each !== joined && each.mark !== "tick");
  const noted = joined && what.note ? what.order.find((index) => what.raised.has(index)) : null;

  const ticks = steps(range, Math.max(3, Math.floor((right - left) / (56 * rem()))));
  pen.lineWidth = 1;
  for (const tick of ticks) {
    pen.strokeStyle = colour(tick === 0 ? "quiet" : "line");
    stroke(pen, place(tick), axis, place(tick), height);
  }
  for (let i = first; i < last; i++) {
    const index = what.order[i];
    const y = axis + (i + 0.5) * row - top;
    if (what.chosen.has(index)) {
      pen.fillStyle = faded("target", 0.18);
      pen.fillRect(0, y - row / 2, width, row);
      pen.fillStyle = colour("target");
      pen.fillRect(0, y - row / 2, 4, row);
    }
    if (i === what.gap) {
      pen.setLineDash([2, 4]);
      pen.strokeStyle = colour("quiet");
      stroke(pen, 0, y - row / 2, width, y - row / 2);
      pen.setLineDash([]);
    }
    const isRaised = what.raised?.has(index);
    pen.fillStyle = colour(isRaised ? "bad" : "ink");
    const indent = isRaised ? 16 * rem() : 0;
    const labelAt = isNarrow ? y - row / 2 + 13 * rem() : y;
    const marksAt = isNarrow ? y + row / 2 - 14 * rem() : y;
    pen.textAlign = isNarrow ? "left" : "right";
    const parts = wrapped(pen, what.labels[index], text - indent, lines);
    parts.forEach((part, k) =>
      pen.fillText(part, isNarrow ? 8 + indent : text, labelAt + k * LINE * rem()),
    );
    const noteAt = labelAt + (parts.length - 1) * LINE * rem();
    const labelEnd = 8 + indent + pen.measureText(parts.at(-1)).width;
    if (isRaised) mark(pen, "raised", 9 * rem(), labelAt, row);
    if (what.text) {
      pen.textAlign = "right";
      pen.font = `600 ${font()}`;
      pen.fillStyle = colour("ink");
      pen.fillText(what.text(index), width - 8, labelAt);
      pen.font = font();
    }
    const gap = Math.min(6 * rem(), ROW / (lanes.length + 1));
    const laneOf = (k) => marksAt + (k - (lanes.length - 1) / 2) * gap;
    if (band) {
      const ends = [place(band.low[index]), place(band.high[index])];
      pen.fillStyle = colour(band.colour);
      for (const x of ends)
        if (x >= left && x <= right) pen.fillRect(x - 0.5, marksAt - BOUND / 2, 1, BOUND);
      if (ends[1] > right) arrow(pen, right, marksAt);
    }
    if (joined) {
      pen.strokeStyle = colour(isRaised ? "bad" : joined.colour);
      pen.lineWidth = isRaised ? 2.5 : 1.5;
      const [from, to] = [marked[0], joined].map((each) => place(each.values[index]));
      stroke(pen, from, laneOf(0), to, laneOf(0));
      if (index === noted) {
        pen.fillStyle = colour("bad");
        if (isNarrow) annotate(pen, what.note, [[labelEnd + 8, width - value]], noteAt);
        else {
          const [low, high] = [Math.min(from, to), Math.max(from, to)];
          const places = [
            [high + 12, right],
            [low + 12, high - 12],
            [left, low - 40],
          ];
          annotate(pen, what.note, places, marksAt);
        }
      }
    }
    for (const each of marked) {
      const at = each.mark === "tick" ? marksAt : laneOf(Math.max(0, lanes.indexOf(each)));
      if (each.low && each !== joined) {
        const isFirst = each === marked[0];
        pen.strokeStyle = isFirst ? faded(each.colour, 0.3) : colour(each.colour);
        pen.lineWidth = isFirst ? 6 : 1.5;
        stroke(pen, place(each.low[index]), at, place(each.high[index]), at);
      }
      pen.strokeStyle = pen.fillStyle = colour(each.colour);
      if (Number.isFinite(each.values[index]))
        mark(pen, each.mark, place(each.values[index]), at, ROW * rem(), each.size);
    }
  }
  pen.fillStyle = colour("paper");
  pen.fillRect(0, 0, width, axis);
  pen.fillStyle = colour("quiet");
  pen.textAlign = "center";
  for (const tick of ticks)
    if (place(tick) < width - 20) pen.fillText(`${number(100 * tick)} %`, place(tick), axis / 2);
  pen.strokeStyle = colour("line");
  stroke(pen, 0, axis - 0.5, width, axis - 0.5);
}

/** Write a note into the first of the places `[from, to]` that is wide enough, over what is there. */
function annotate(pen, note, places, y) {
  const wide = pen.measureText(note).width;
  const place = places.find(([from, to]) => to - from >= wide);
  if (!place) return;
  const ink = pen.fillStyle;
  pen.fillStyle = colour("paper");
  pen.fillRect(place[0] - 4, y - 8, wide + 8, 16);
  pen.fillStyle = ink;
  pen.textAlign = "left";
  pen.fillText(note, place[0], y);
}

/** Tell that a band ends beyond the axis. */
function arrow(pen, x, y) {
  pen.beginPath();
  pen.moveTo(x - 5, y - 4);
  pen.lineTo(x, y);
  pen.lineTo(x - 5, y + 4);
  pen.fill();
}
