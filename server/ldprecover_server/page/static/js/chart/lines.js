// Small multiples: a panel with a line and its band for each item, over the numbers of rounds.

import { h } from "../dom.js";
import { colour, faded, font, onTheme, rem } from "./colours.js";
import { mark } from "./marks.js";
import { fit, placeTip, steps, stroke, wrapped } from "./pen.js";

const [LEAST_WIDE, COLUMNS] = [230, [2, 4]]; // of a panel; how many there are in a row
const [LINE, PLOT, AXIS, GAP] = [17, 76, 20, 14]; // heights, and the space between panels
const TICKS = 38; // width of their labels
const VALUE = 62; // width of the number beside a title
const DOTS = 40; // points up to which each has a dot, and bad ones a large mark

/**
 * Make the chart in a frame. The returned function draws `{panels, attacked, describePoint(panel, point)}`.
 *
 * A panel is `{title, text, points, colour, tick(value), isCount}`, its points `{x, y, low, high, isBad}` by x. The panels
 * have scales of one length, so that slopes compare; one of counts has its scale from 0. Bad points are marked, and do
 * not widen the scales. `attacked` is the set of x that are shaded.
 */
export function lines(frame, signal) {
  const canvas = h("canvas");
  const tip = h("div", { class: "tip", hidden: true });
  frame.plot.append(canvas, tip);
  let what = null;
  let areas = []; // of the panels that are drawn
  let waiting = 0;

  function draw(next = what) {
    what = next;
    waiting = 0;
    if (what && !signal.aborted) areas = paint(canvas, what, frame.plot.clientWidth);
  }

  canvas.addEventListener("mousemove", (event) => {
    const box = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const k = areas.findIndex((each) => x > each.left && x < each.right && y < each.bottom);
    tip.hidden = k < 0;
    if (tip.hidden) return;
    const far = (point) => Math.abs(areas[k].place(point.x) - x);
    const nearest = what.panels[k].points.reduce((a, b) => (far(b) < far(a) ? b : a));
    tip.textContent = what.describePoint(k, nearest);
    placeTip(tip, event);
  });
  canvas.addEventListener("mouseleave", () => (tip.hidden = true));
  const observer = new ResizeObserver(() => (waiting ||= requestAnimationFrame(() => draw())));
  observer.observe(frame.plot);
  signal.addEventListener("abort", () => observer.disconnect());
  onTheme(() => draw(), signal);
  frame.picture = () => {
    if (!what) return null;
    const picture = document.createElement("canvas");
    paint(picture, what, Math.max(600, frame.plot.clientWidth), 2);
    return picture;
  };
  return draw;
}

/** Draw all panels onto a canvas of this width; return where they are. */
function paint(canvas, { panels, attacked }, width, scale) {
  const unit = rem();
  const [fewest, most] = COLUMNS;
  const columns = Math.max(fewest, Math.min(most, Math.floor(width / (LEAST_WIDE * unit))));
  const wide = (width - (columns - 1) * GAP) / columns;
  const room = wide - VALUE * unit;
  const pen = canvas.getContext("2d");
  pen.font = font();
  const rows = panels.some(({ title }) => pen.measureText(title).width > room - 8) ? 2 : 1;
  const high = (rows * LINE + PLOT + AXIS + GAP) * unit;
  fit(canvas, width, Math.ceil(panels.length / columns) * high, scale);
  pen.fillStyle = colour("paper");
  pen.fillRect(0, 0, width, canvas.height);
  pen.textBaseline = "middle";
  const xs = panels[0].points.map((point) => point.x);
  const ends = [Math.min(...xs), Math.max(...xs)];
  const spans = panels.filter((panel) => !panel.isCount).map(extent);
  const span = Math.max(1e-6, ...spans.map(([low, high]) => high - low));
  const step = (wide - TICKS * unit) / (ends[1] - ends[0] + 1);
  return panels.map((panel, k) => {
    const left = (k % columns) * (wide + GAP);
    const top = Math.floor(k / columns) * high + rows * LINE * unit;
    const start = left + TICKS * unit;
    const place = (x) => start + (x - ends[0] + 0.5) * step;
    const area = { left, start, right: left + wide, top, bottom: top + PLOT * unit, place, step };
    paintHead(pen, panel, area, room);
    paintPlot(pen, panel, area, { range: rangeOf(panel, span), ends, attacked });
    return area;
  });
}

/** The range of a panel's values, without bad ones if there are others. */
function extent({ points }) {
  const clean = points.filter((point) => !point.isBad);
  const counted = clean.length ? clean : points;
  const low = Math.min(...counted.map((point) => point.low));
  return [low, Math.max(...counted.map((point) => point.high))];
}

/** The scale of a panel: of the common span, around its values. */
function rangeOf(panel, span) {
  const [low, high] = extent(panel);
  if (panel.isCount) return [0, 1.1 * Math.max(1, high)];
  const from = Math.max(Math.min(0, low), (low + high - span) / 2);
  return [from - 0.04 * span, from + 1.04 * span];
}

function paintHead(pen, { title, text }, { left, right, top }, room) {
  const line = LINE * rem();
  pen.font = font();
  pen.fillStyle = colour("ink");
  pen.textAlign = "left";
  const rows = wrapped(pen, title, room, 2);
  rows.forEach((row, k) => pen.fillText(row, left, top - (rows.length - k - 0.5) * line));
  pen.font = `600 ${font()}`;
  pen.textAlign = "right";
  pen.fillText(text, right, top - 0.5 * line);
}

function paintPlot(pen, { points, colour: name, tick }, area, { range, ends, attacked }) {
  const { start, right, top, bottom, place, step } = area;
  const unit = rem();
  const height = (value) => {
    const share = (value - range[0]) / (range[1] - range[0]);
    return bottom - Math.max(0, Math.min(1, share)) * (bottom - top);
  };
  pen.font = font();
  pen.fillStyle = faded("bad", 0.14);
  for (const x of attacked) pen.fillRect(place(x) - step / 2, top, step, bottom - top);
  pen.lineWidth = 1;
  pen.strokeStyle = colour("line");
  pen.fillStyle = colour("quiet");
  stroke(pen, start, bottom, right, bottom);
  for (const value of steps(range, 2).filter((each) => height(each) > top + 6)) {
    stroke(pen, start, height(value), right, height(value));
    pen.fillText(tick(value), start - 5, height(value));
  }
  if (ends[1] > ends[0]) pen.fillText(ends[1], right, bottom + AXIS * unit * 0.5);
  pen.textAlign = "left";
  pen.fillText(ends[0], start, bottom + AXIS * unit * 0.5);

  for (const run of runs(points)) {
    pen.fillStyle = faded(name, 0.25);
    pen.beginPath();
    for (const { x, high } of run) pen.lineTo(place(x), height(high));
    for (const { x, low } of run.toReversed()) pen.lineTo(place(x), height(low));
    pen.fill();
    pen.strokeStyle = colour(name);
    pen.lineWidth = 2;
    pen.beginPath();
    for (const { x, y } of run) pen.lineTo(place(x), height(y));
    pen.stroke();
  }
  points.forEach(({ x, y, isBad }, k) => {
    const isLast = k === points.length - 1;
    pen.fillStyle = colour(isBad ? "bad" : name);
    if (isBad) mark(pen, "raised", place(x), height(y), 0, points.length <= DOTS ? 4 : 2);
    else if (isLast || points.length <= DOTS)
      mark(pen, "dot", place(x), height(y), 0, isLast ? 4 : 2.5);
  });
}

/** Points by x, in runs of numbers that follow each other. */
function runs(points) {
  const found = [];
  for (const point of points) {
    if (found.at(-1)?.at(-1).x === point.x - 1) found.at(-1).push(point);
    else found.push([point]);
  }
  return found;
}
