// The lesson in one picture: the shares that people told, what fake reports made of them, what recovery gives back.

import { fill, h, svg } from "../dom.js";
import { isolated, percent } from "../format.js";

const SHOWN = 8;
const SERIES = ["told", "attacked", "recovered"];
const within = (share) => Math.min(Math.max(share, 0), 1); // an unbiased estimate may leave [0, 1]

/** A share within [0, 1] in whole per cent, on one line. */
export function whole(share) {
  return percent(within(share), 0).replace(" ", "\u00a0");
}

/** Make the picture of items with these labels. */
export function lessonPicture(labels) {
  const rows = labels.map((label) => {
    const bars = SERIES.map((name) =>
      h("div", { class: `lesson-bar ${name}` }, h("i", {}), h("b", {})),
    );
    const root = h(
      "div",
      { class: "lesson-row", role: "img", hidden: true },
      h("span", {}, isolated(label), h("small", { hidden: true }, " ▲ raised")),
      h("div", {}, bars),
    );
    return { root, bars, mark: root.querySelector("small") };
  });
  const legend = SERIES.map((name) =>
    h("span", {}, svg("svg", { class: `lesson-key ${name}`, "aria-hidden": "true" }), name),
  );
  const finding = h("p", { class: "lesson-finding" });
  return {
    root: h(
      "div",
      { class: "lesson" },
      finding,
      h("p", { class: "legend" }, legend),
      rows.map(({ root }) => root),
    ),
    /** Draw shares by item; each of `told`, `attacked` and `recovered` may be null. `raised` are indices. */
    draw({ told, attacked, recovered, raised, sentence }) {
      const columns = [told, attacked, recovered].map((column) => column?.map(within) ?? null);
      const order = labels.map((_, i) => i);
      const size = (i) => (raised.includes(i) ? 2 : 0) + (told?.[i] ?? 0);
      const shown = new Set(order.sort((i, j) => size(j) - size(i)).slice(0, SHOWN));
      const shares = columns.flatMap((column) => [...shown].map((i) => column?.[i] ?? 0));
      const largest = Math.max(0.01, ...shares);
      rows.forEach(({ root, bars, mark }, i) => {
        root.hidden = !shown.has(i) || !attacked;
        mark.hidden = !raised.includes(i);
        const words = [];
        bars.forEach((bar, k) => {
          const value = columns[k]?.[i] ?? null;
          bar.hidden = columns[k] === null;
          const text = value === null ? "" : whole(value);
          bar.firstChild.style.width = `${(100 * (value ?? 0)) / largest}%`;
          fill(bar.lastChild, text);
          if (value !== null) words.push(`${SERIES[k]} ${text}`);
        });
        root.setAttribute("aria-label", `${labels[i]}: ${words.join(", ")}`);
      });
      fill(finding, sentence);
    },
  };
}
