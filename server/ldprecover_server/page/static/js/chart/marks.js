// Marks of series, which differ in shape too: on canvases and in legends.

import { svg } from "../dom.js";
import { colour, rem } from "./colours.js";

/** Draw a mark in the context's colours; `height` is that of its row, for ticks. */
export function mark(pen, kind, x, y, height, size = 4) {
  const r = size * rem();
  pen.beginPath();
  if (kind === "square") pen.rect(x - r + 0.5, y - r + 0.5, 2 * r - 1, 2 * r - 1);
  else if (kind === "diamond") {
    pen.moveTo(x, y - r - 0.5);
    pen.lineTo(x + r + 0.5, y);
    pen.lineTo(x, y + r + 0.5);
    pen.lineTo(x - r - 0.5, y);
  } else if (kind === "raised") {
    pen.moveTo(x, y - r);
    pen.lineTo(x + r, y + r);
    pen.lineTo(x - r, y + r);
  } else if (kind === "tick") pen.rect(x - 1.25, y - height / 2 + 3, 2.5, height - 6);
  else if (kind === "line") pen.rect(x - 8, y - 1.25, 16, 2.5);
  else if (kind === "band") {
    pen.rect(x - 7, y - 5, 1, 10);
    pen.rect(x + 6, y - 5, 1, 10);
  } else pen.arc(x, y, r, 0, 2 * Math.PI);
  if (kind === "ring") {
    pen.lineWidth = 2;
    pen.stroke();
  } else pen.fill();
}

const SIGNS = {
  dot: () => [svg("circle", { cx: 8, cy: 6, r: 4 })],
  square: () => [svg("rect", { x: 4, y: 2, width: 8, height: 8 })],
  diamond: () => [svg("path", { d: "M8 1l5 5-5 5-5-5z" })],
  raised: () => [svg("path", { d: "M8 2l4 8H4z" })],
  ring: () => [svg("circle", { cx: 8, cy: 6, r: 3.5, fill: "none", "stroke-width": 2 })],
  tick: () => [svg("rect", { x: 7, y: 0, width: 2.5, height: 12 })],
  line: () => [svg("rect", { x: 0, y: 5, width: 16, height: 2.5 })],
  band: () => [svg("path", { d: "M1 1h1v10h-1zM14 1h1v10h-1z" })],
};

/** The legend symbol of a series `{colour, mark}`. */
export function sign({ colour: name, mark: kind = "line" }) {
  const drawn = svg("svg", {
    width: 16,
    height: 12,
    "aria-hidden": "true",
    fill: colour(name),
    stroke: kind === "ring" ? colour(name) : "none",
  });
  drawn.append(...SIGNS[kind]());
  return drawn;
}
