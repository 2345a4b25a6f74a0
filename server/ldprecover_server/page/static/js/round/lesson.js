// The lesson in one picture: the shares that people told, what fake reports made of them, what recovery gives back.

import { fill, h, svg } from "../dom.js";
import { isolated, percent, plural } from "../format.js";

const SHOWN = 8;
const RAISED = 4; // of them, where there are others to show
const NAMED = 3; // raised items in a sentence
const LABEL = 40; // characters of a label in a sentence
const SERIES = ["told", "attacked", "recovered"];
const within = (share) => Math.min(Math.max(share, 0), 1); // an unbiased estimate may leave [0, 1]

/** A share within [0, 1] in whole per cent, on one line. */
export function whole(share) {
  return percent(within(share), 0).replace(" ", "\u00a0");
}

/** A label in a sentence, at most LABEL characters of it. */
function named(label) {
  return isolated(label.length > LABEL ? `${label.slice(0, LABEL - 1)}…` : label);
}

/**
 * The picture in sentences: the item that leads, what fake reports did, and what recovery gives back. Without raised
 * items they tell of the one that leads.
 */
function sentences(labels, { told, attacked, recovered, raised, fakes, method }) {
  if (!told) return [];
  const largest = (values, items) => items.reduce((a, b) => (values[b] > values[a] ? b : a));
  const first = largest(told, Object.keys(labels).map(Number));
  const leads = `People told: ${named(labels[first])} leads with ${whole(told[first])}.`;
  if (!fakes) return [leads];
  const isMany = raised.length > NAMED;
  const items = isMany ? [largest(attacked, raised)] : raised.length ? raised : [first];
  const names = items.map((item) => named(labels[item])).join(", ");
  const share = (values) => whole(items.reduce((sum, item) => sum + values[item], 0));
  const what = isMany ? `${raised.length} items: ${names}` : names;
  const verb = raised.length ? "raise" : "move";
  const together = items.length > 1 ? " together" : "";
  const change = `from ${share(told)} to ${share(attacked)}`;
  const attack = ` ${plural(fakes, "fake report")} ${verb} ${what}${together} ${change}.`;
  const them = items.length > 1 ? "them" : "it";
  const repair = recovered && ` ${method} takes ${them} back to ${share(recovered)}.`;
  return [leads, attack, repair];
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
    /**
     * Draw shares by item; each of `told`, `attacked` and `recovered` may be null. `raised` are the indices that `fakes`
     * fake reports raise, and `method` is what recovered.
     */
    draw(lesson) {
      const { told, attacked, recovered, raised } = lesson;
      const columns = [told, attacked, recovered].map((column) => column?.map(within) ?? null);
      const order = labels.map((_, i) => i);
      const size = (i) => told?.[i] ?? 0;
      const most = labels.length > SHOWN ? RAISED : SHOWN;
      const first = raised.slice(0, most);
      const others = order.filter((i) => !first.includes(i)).sort((i, j) => size(j) - size(i));
      const shown = new Set([...first, ...others.slice(0, SHOWN - first.length)]);
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
      fill(finding, sentences(labels, lesson));
    },
  };
}
