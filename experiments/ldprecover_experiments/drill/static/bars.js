// Bars, one a row: errors on a logarithmic axis, or gains on both sides of zero.

import { colour, font, onTheme, rem } from "/page/js/chart/colours.js";
import { h } from "/page/js/dom.js";

const ROW = 30;
const TEXT = 76; // for the number at the end of a bar

/** Make the chart in a frame. The returned function draws `{rows: [{label, value, text, colour}], log}`. */
export function bars(frame, signal) {
  const canvas = h("canvas");
  frame.plot.append(canvas);
  let what = null;

  const size = () => [
    Math.max(240, frame.plot.clientWidth),
    Math.max(1, what.rows.length) * ROW * rem() + 4,
  ];
  function draw(next) {
    what = next ?? what;
    if (!what || signal.aborted) return;
    paint(canvas, what, size(), devicePixelRatio || 1);
  }
  const observer = new ResizeObserver(() => draw());
  observer.observe(frame.plot);
  signal.addEventListener("abort", () => observer.disconnect());
  onTheme(() => draw(), signal);
  frame.picture = () => {
    if (!what) return null;
    const drawn = document.createElement("canvas");
    paint(drawn, what, [Math.max(600, size()[0]), size()[1]], 2);
    return drawn;
  };
  return draw;
}

function paint(canvas, { rows, log }, [width, height], scale) {
  [canvas.width, canvas.height] = [Math.round(width * scale), Math.round(height * scale)];
  [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.fillStyle = colour("paper");
  pen.fillRect(0, 0, width, height);
  pen.font = font();
  pen.textBaseline = "middle";
  const row = ROW * rem();
  const number = TEXT * rem();
  const left = Math.min(
    0.4 * width,
    Math.max(...rows.map((each) => pen.measureText(each.label).width)) + 12,
  );
  const least = Math.min(0, ...rows.map((each) => each.value));
  const from = left + (!log && least < 0 ? number : 0); // a bar to the left has its number on the left
  const place = scaleOf(
    rows.map((each) => each.value),
    log,
    from,
    width - number,
  );
  const zero = log ? from : place(0);
  rows.forEach((each, i) => {
    const y = (i + 0.5) * row;
    pen.fillStyle = colour("ink");
    pen.textAlign = "left";
    pen.fillText(each.label, 0, y, left - 8);
    const end = place(each.value);
    pen.fillStyle = colour(each.colour);
    pen.fillRect(
      Math.min(zero, end),
      y - row / 3,
      Math.max(1.5, Math.abs(end - zero)),
      (2 * row) / 3,
    );
    pen.fillStyle = colour("ink");
    const isLeft = end < zero;
    pen.textAlign = isLeft ? "right" : "left";
    pen.fillText(each.text, isLeft ? end - 6 : Math.max(zero, end) + 6, y);
  });
  pen.fillStyle = colour("quiet");
  pen.fillRect(zero - 0.5, 0, 1, height);
}

/** Return the position of a value. On a logarithmic axis the smallest has a short bar, and zero none. */
function scaleOf(values, log, from, to) {
  if (!log) {
    const [least, most] = [Math.min(0, ...values), Math.max(0, ...values)];
    const length = most - least || 1;
    return (value) => from + ((value - least) / length) * (to - from);
  }
  const known = values.filter((value) => value > 0);
  if (!known.length) return () => from;
  const [low, high] = [Math.log10(Math.min(...known)) - 0.5, Math.log10(Math.max(...known))];
  return (value) =>
    value > 0 ? from + ((Math.log10(value) - low) / (high - low)) * (to - from) : from;
}
