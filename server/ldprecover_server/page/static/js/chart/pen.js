// Strokes and texts on canvases, which all charts share.

/** Give a canvas this size in CSS pixels. */
export function fit(canvas, width, height, scale = devicePixelRatio || 1) {
  const [wide, high] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high];
  [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
  canvas.getContext("2d").setTransform(scale, 0, 0, scale, 0, 0);
}

/** Draw a straight line. */
export function stroke(pen, x0, y0, x1, y1) {
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  pen.stroke();
}

/** A label in at most this many lines of this width, broken between words; its end may be cut. */
export function wrapped(pen, label, width, lines) {
  if (lines === 1 || pen.measureText(label).width <= width - 8)
    return [shortened(pen, label, width)];
  const words = label.split(" ");
  let k = words.length - 1;
  while (k > 0 && pen.measureText(words.slice(0, k).join(" ")).width > width - 8) k -= 1;
  if (k === 0) return [shortened(pen, label, width)];
  const rest = shortened(pen, words.slice(k).join(" "), width);
  return [words.slice(0, k).join(" "), rest];
}

function shortened(pen, label, width) {
  if (pen.measureText(label).width <= width - 8) return label;
  let [low, high] = [0, Math.min(label.length, 80)];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (pen.measureText(`${label.slice(0, middle)}…`).width <= width - 8) low = middle;
    else high = middle - 1;
  }
  return `${label.slice(0, low)}…`;
}

/** About `most` round numbers within a range. */
export function steps([from, to], most) {
  const rough = (to - from) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  const found = [];
  for (let k = Math.ceil(from / step); k * step <= to; k++)
    found.push(Number((k * step).toPrecision(12)));
  return found;
}

/** Place the text beside the pointer, within the window. */
export function placeTip(tip, event) {
  const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
  const under = event.clientY + 18 + tip.offsetHeight < innerHeight;
  tip.style.left = `${Math.max(8, left)}px`;
  tip.style.top = `${event.clientY + (under ? 18 : -12 - tip.offsetHeight)}px`;
}
