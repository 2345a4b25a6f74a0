// The colours of app.css, for canvases.

let known = new Map();
let probe = null;
addEventListener("themechange", () => (known = new Map()));

/** The colour `--name` of app.css in the current theme, as `rgb(…)`. */
export function colour(name) {
  let found = known.get(name);
  if (found === undefined) {
    if (probe === null) {
      probe = document.createElement("span");
      probe.hidden = true;
      document.body.append(probe);
    }
    probe.style.color = `var(--${name})`;
    found = getComputedStyle(probe).color;
    known.set(name, found);
  }
  return found;
}

/** The same colour with an opacity from 0 to 1. */
export function faded(name, alpha) {
  const [r, g, b] = colour(name).match(/[\d.]+/g);
  return `rgba(${r}, ${g}, ${b}, ${alpha})`;
}

/** Whether the page is being printed: charts and tables then have every row. */
export const isPaper = () => document.documentElement.hasAttribute("data-paper");

/** Draw again when the theme changes, until `signal` aborts. */
export function onTheme(draw, signal) {
  addEventListener("themechange", draw, { signal });
}

/** The font of charts, in CSS pixels. */
export function font(size = 13) {
  return `${size * rem()}px system-ui, "Liberation Sans", sans-serif`;
}

/** The viewer's text size, relative to the default. */
export function rem() {
  return parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
}

/** The colours of methods that are compared, in this order. */
export const SERIES = ["recovered", "second", "third", "target", "fourth"];
