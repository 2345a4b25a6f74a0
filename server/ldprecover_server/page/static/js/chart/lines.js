// Lines over numbers or rounds, with bands: uPlot within a frame.

import { colour, faded, font, onTheme, rem } from "./colours.js";

const HEIGHT = 260;

let library = null;

/** Load uPlot, which most views do without. */
function load() {
  library ??= new Promise((resolve, reject) => {
    const vendor = new URL("../../vendor/", import.meta.url);
    const script = Object.assign(document.createElement("script"), {
      onload: resolve,
      onerror: reject,
    });
    script.src = new URL("uPlot.iife.min.js", vendor);
    const style = Object.assign(document.createElement("link"), { rel: "stylesheet" });
    style.href = new URL("uPlot.min.css", vendor);
    document.head.append(style, script);
  });
  return library;
}
const WHOLE = [1, 2, 5, 10, 20, 50];

/**
 * Make a line chart in a frame; the returned function draws
 * `{x, xTitle, yTitle, xText(value), series, logX, logY}`.
 *
 * `x` is a list of ascending numbers, whole ones where `xText` names them; a series is `{name, colour, values, low, high, dash, points, width}`, where `low`
 * and `high` are the ends of a band around it, and `values` may be null. It takes colours by their names in app.css.
 */
export function lines(frame, signal) {
  let plot = null;
  let last = null;

  const width = () => Math.max(200, frame.plot.clientWidth);

  async function draw(what) {
    last = what;
    await load();
    if (last !== what || signal.aborted) return;
    plot?.destroy();
    const { options, data } = prepared(what, width());
    plot = new uPlot(options, data, frame.plot);
    frame.label();
    frame.picture = () => plot.ctx.canvas;
    frame.setLegend(
      what.series.map((each) => ({
        name: each.name,
        colour: each.colour,
        mark: each.values ? "line" : "band",
      })),
    );
  }

  const observer = new ResizeObserver(() => {
    if (plot && plot.width !== width()) plot.setSize({ width: width(), height: HEIGHT });
  });
  observer.observe(frame.plot);
  signal.addEventListener("abort", () => {
    observer.disconnect();
    plot?.destroy();
  });
  onTheme(() => last && draw(last), signal);
  return draw;
}

function prepared({ x, xTitle, yTitle, xText, series, logX = false, logY = false }, width) {
  const axis = (label, values) => ({
    label,
    values,
    font: font(),
    labelFont: font(),
    labelSize: 20 * rem(),
    stroke: colour("quiet"),
    grid: { stroke: colour("line"), width: 1 },
    ticks: { stroke: colour("line"), width: 1 },
  });
  const columns = [x];
  const drawn = [{}];
  const bands = [];
  const line = (each, values, more) => {
    columns.push(values);
    drawn.push({
      label: each.name,
      stroke: colour(each.colour),
      width: each.width ?? 2,
      dash: each.dash,
      points: { show: each.points ?? x.length < 40, size: 7, fill: colour(each.colour) },
      spanGaps: false,
      ...more,
    });
    return columns.length - 1;
  };
  for (const each of series) {
    if (each.low) {
      const edge = {
        stroke: faded(each.colour, 0.35),
        width: 1,
        points: { show: false },
        dash: undefined,
      };
      const ends = [line(each, each.high, edge), line(each, each.low, edge)];
      bands.push({ series: ends, fill: faded(each.colour, 0.16) });
    }
    if (each.values) line(each, each.values);
  }
  const options = {
    width,
    height: HEIGHT,
    padding: [null, 40 * rem(), null, null],
    series: drawn,
    bands,
    legend: { show: false },
    cursor: { drag: { x: true, y: false } },
    scales: {
      x: {
        time: false,
        distr: logX ? 3 : 1,
        range: x.length === 1 ? [x[0] - 1, x[0] + 1] : undefined,
      },
      y: { distr: logY ? 3 : 1 },
    },
    axes: [
      {
        ...axis(
          xTitle,
          xText && ((_, ticks) => ticks.map((tick) => (tick === null ? null : xText(tick)))),
        ),
        size: 40 * rem(),
        ...(xText && !logX ? { incrs: WHOLE } : {}),
      },
      { ...axis(yTitle), size: 64 * rem() },
    ],
  };
  return { options, data: columns };
}
