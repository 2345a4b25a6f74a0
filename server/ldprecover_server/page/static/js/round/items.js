// The items of a round: the best estimate, what was collected, and other recoveries.

import { labelKey } from "../../client/src/labels.js";
import { SERIES } from "../chart/colours.js";
import { dots } from "../chart/dots.js";
import { frame, numeric } from "../chart/frame.js";
import { field, h } from "../dom.js";
import { change, count, day, frequency, isolated, number, plural, share } from "../format.js";
import { SORTS } from "./settings.js";

/** Standard errors on each side of a normal 95 % interval. */
export const WIDE = 1.959964;
const MARKS = ["square", "diamond", "ring", "square"];
const USERS = "Share of users by item"; // the title of the chart
const LEADING = 10;
const ROWS = 13; // unless all are shown
const MOST_RAISED = 8; // of them
const BAND_ROOM = 0.3; // of the axis, for the certified band

/** The column of what was collected. */
export function collected({ frequencies, standard_errors: errors }) {
  const ends = (sign) => frequencies.map((value, i) => value + sign * WIDE * errors[i]);
  return {
    name: "as collected",
    field: "frequency",
    colour: "collected",
    mark: "ring",
    size: 3,
    values: frequencies,
    low: ends(-1),
    high: ends(1),
    joined: true,
  };
}

/** The column of the best estimate, an answer of the recommended recovery. */
export function bestEstimate({ recovered, conclusions }) {
  return {
    name: "best estimate",
    field: "recovered",
    colour: "recovered",
    mark: "dot",
    size: 5,
    values: recovered,
    low: conclusions?.lower ?? null,
    high: conclusions?.upper ?? null,
  };
}

/** The columns of other methods, `[{name, answer}]`. */
export function others(recovered) {
  return recovered.map(({ name, answer }, k) => ({
    name,
    colour: SERIES[1 + (k % (SERIES.length - 1))],
    mark: MARKS[k % MARKS.length],
    values: answer.recovered,
    low: answer.conclusions?.lower ?? null,
    high: answer.conclusions?.upper ?? null,
  }));
}

/** Certified intervals as a series of the chart; without a certificate what the legend says until it comes. */
export function band(certificate) {
  const series = { name: "certified, being worked out", colour: "quiet", mark: "band", values: [] };
  if (!certificate) return series;
  const { malicious_share: assumed, lower, upper } = certificate;
  const name = `certified, if at most ${share(assumed)} are malicious`;
  return { ...series, name, low: lower, high: upper };
}

/** Whether the noise exceeds what tells the items apart, so that nothing is to be ranked. */
export const isBlurred = ({ notes = [] }) => notes.some(isOfNoise);
const isOfNoise = (note) => note.startsWith("The noise");

/** Half the width of the 95 % interval of a leading item: of the best estimate, and as collected. */
export function errorBars(estimates, best) {
  const { lower, upper } = best?.conclusions ?? {};
  const values = best?.recovered ?? estimates.frequencies;
  const leading = values
    .map((_, i) => i)
    .sort((a, b) => values[b] - values[a])
    .slice(0, LEADING);
  const mean = (of) => leading.reduce((sum, i) => sum + of(i), 0) / leading.length;
  const collectedBar = mean((i) => WIDE * estimates.standard_errors[i]);
  return { collectedBar, bar: lower ? mean((i) => (upper[i] - lower[i]) / 2) : collectedBar };
}

/** The rows to show before all are asked for: the first, and those that are raised, and where items are left out. */
export function fewRows(all, raised) {
  if (all.length <= ROWS) return { order: all, gap: null };
  const marked = new Set(raised.slice(0, MOST_RAISED));
  const isShown = new Set(all.slice(0, ROWS));
  // Each raised item from below takes the place of the last of the others.
  const below = all.slice(ROWS).filter((index) => marked.has(index));
  const head = Array.from(all.slice(0, ROWS));
  for (let k = head.length - 1, left = below.length; left > 0 && k >= 0; k--)
    if (!marked.has(head[k])) {
      isShown.delete(head[k]);
      left -= 1;
    }
  const top = head.filter((index) => isShown.has(index));
  return { order: [...top, ...below], gap: below.length ? top.length : null };
}

/** What the chart shows, in the second line of a picture. */
export function caption(round, n) {
  return `Round ${round.name} · ${plural(n, "report")} · ε = ${number(round.epsilon)} · ${day(round.closed_at ?? new Date())}`;
}

/** Make the chart of a round's items; `toggle(index)` adds or removes a target, `changed` follows a setting. */
export function itemsChart(round, settings, signal, toggle, changed, title = USERS) {
  let n = round.n;
  const shown = frame({
    title,
    name: `${round.name}-frequencies`,
    signal,
    caption: () => caption(round, n),
  });
  const draw = dots(shown, signal);
  const folded = round.items.map((label) => labelKey(label).toLowerCase());
  const labels = round.items;
  const sort = h(
    "select",
    { name: "sort", value: settings.sort },
    Object.entries(SORTS).map(([name, text]) => h("option", { value: name }, text)),
  );
  const find = h("input", {
    type: "search",
    name: "find",
    value: settings.find,
    autocomplete: "off",
    placeholder: "part of a label",
  });
  const arranged = h("div", { class: "controls" }, field("Sort by", sort), field("Find", find));
  const all = h("button", {
    type: "button",
    onclick: () => {
      settings.top = settings.top === "all" ? "" : "all";
      changed();
    },
  });
  shown.plot.after(h("div", { class: "row" }, all));
  shown.plot.before(arranged);
  sort.addEventListener("change", () => {
    settings.sort = sort.value;
    changed();
  });
  find.addEventListener("input", () => {
    settings.find = find.value;
    changed();
  });

  return {
    root: shown.root,
    labels,
    /** Draw `estimates`, the `best` one, `recovered` `[{name, answer}]` of other methods, the truth, and the items that
     * are `raised`; `pending` tells whether more of them have been requested. `certified` is the certificate, null if it
     * is not there, undefined if the protocol has none. */
    draw({ estimates, best, recovered, certified, pending, truth, raised, suspicion, mayChoose }) {
      n = estimates.n;
      const isAll = settings.top === "all";
      arranged.hidden = !isAll;
      all.hidden = round.items.length <= ROWS;
      all.textContent = isAll
        ? "Show the first only"
        : `Show all ${count(round.items.length)} items`;
      const series = [
        ...(best ? [bestEstimate(best)] : []),
        collected(estimates),
        ...others(recovered),
        ...(truth
          ? [{ name: "truth", colour: "truth", mark: "tick", values: truth.frequencies }]
          : []),
      ];
      sort.options[0].disabled = isBlurred(estimates); // the best estimate
      const isUnranked = settings.sort === "estimate" && isBlurred(estimates);
      const by = isUnranked ? { ...settings, sort: "index" } : settings;
      sort.value = by.sort;
      const order = arrange(series, folded, by, estimates.frequencies, suspicion);
      const rows = isAll ? { order, gap: null } : fewRows(order, raised);
      const isComing = certified === null && pending;
      const marks = certified || isComing ? [band(certified)] : [];
      if (raised.length)
        marks.push({
          name: "raised by malicious reports",
          colour: "bad",
          mark: "raised",
          values: [],
        });
      const proven = (i) =>
        certified
          ? `, certified ${frequency(certified.lower[i])} to ${frequency(certified.upper[i])}`
          : "";
      draw({
        labels,
        ...rows,
        series: [...series, ...marks],
        room: BAND_ROOM,
        raised: new Set(raised),
        note: `fake reports raised ${raised.length > 1 ? "these" : "this"}`,
        chosen: settings.targets,
        onChoose: mayChoose ? toggle : null,
        text: (index) => frequency(series[0].values[index]),
        describeItem: (index) =>
          `${isolated(labels[index])}: ${series.map((each) => `${each.name} ${frequency(each.values[index])}`).join(", ")}${proven(index)}`,
      });
      shown.describe(sentence(rows.order, order, round, estimates, by, certified));
      const columns = tableColumns(
        labels,
        series,
        certified,
        estimates,
        settings,
        toggle,
        mayChoose,
      );
      shown.setTable(columns, order, {
        isChosen: (index) => settings.targets.has(index),
        long: true,
        pending,
        extra: [
          { name: "lower", value: (index) => series[0].low?.[index] },
          { name: "upper", value: (index) => series[0].high?.[index] },
        ],
      });
    },
  };
}

/** The indices of the items that match the search, in the selected order. */
function arrange(series, folded, settings, reported, suspicion) {
  const wanted = settings.top === "all" ? labelKey(settings.find).toLowerCase() : "";
  const matching = [];
  for (let i = 0; i < folded.length; i++)
    if (!wanted || folded[i].includes(wanted)) matching.push(i);
  const order = Int32Array.from(matching);
  const first = series[0].values;
  const by = {
    estimate: (i) => -first[i],
    collected: (i) => -reported[i],
    change: (i) => -Math.abs(first[i] - reported[i]),
    suspicion: (i) => -suspicion(i),
    index: (i) => i,
  }[settings.sort];
  if (!by)
    return order.sort((a, b) => (folded[a] < folded[b] ? -1 : folded[a] > folded[b] ? 1 : a - b));
  const keys = new Float64Array(folded.length);
  for (const i of order) keys[i] = by(i);
  return order.sort((a, b) => keys[a] - keys[b] || a - b);
}

function sentence(shown, all, round, estimates, settings, certified) {
  const what =
    all.length === round.items.length
      ? `of ${count(round.items.length)} items`
      : `of ${count(all.length)} items found among ${count(round.items.length)}`;
  return [
    ...(estimates.notes ?? []).filter((note) => !isOfNoise(note)), // the verdict says that
    `${count(shown.length)} ${what}, of ${plural(estimates.n, "report")}. Bars hold at 95 %.`,
    settings.sort === "index" && "Items stand in the order of the round.",
    certified &&
      "Grey marks are bounds that hold whatever malicious reports say, if no more are malicious than it says; an arrow: it ends beyond the axis.",
    settings.targets.size > 0 && `Marked: ${plural(settings.targets.size, "target")}.`,
  ]
    .filter(Boolean)
    .join(" ");
}

function tableColumns(labels, series, certified, estimates, settings, toggle, mayChoose) {
  const box = (index, old) => {
    const input =
      old ?? h("input", { type: "checkbox", onchange: (event) => toggle(event.target.item) });
    input.item = index;
    input.checked = settings.targets.has(index);
    input.setAttribute("aria-label", `Target: ${labels[index]}`);
    return input;
  };
  const column = (title, name, values, text = frequency) =>
    numeric(title, (index) => values?.[index] ?? null, text, name);
  const has = (index) => settings.targets.has(index);
  const title = (name) => name[0].toUpperCase() + name.slice(1);
  const [first] = series;
  const reported = estimates.frequencies;
  return [
    mayChoose && { title: "Target", name: "target", kind: "narrow", value: has, node: box },
    { title: "Item", name: "item", kind: "text", value: (index) => labels[index] },
    ...series.map((each) => column(title(each.name), each.field ?? each.name, each.values)),
    column("Collected ±", "standard_error", estimates.standard_errors, (error) =>
      frequency(WIDE * error),
    ),
    certified !== undefined && column("Certified ≥", "certified_lower", certified?.lower),
    certified !== undefined && column("Certified ≤", "certified_upper", certified?.upper),
    first.values !== reported &&
      column(
        "Change",
        "change",
        first.values.map((value, i) => value - reported[i]),
        change,
      ),
  ].filter(Boolean);
}
