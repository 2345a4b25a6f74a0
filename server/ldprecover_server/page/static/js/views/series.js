// A series: its items' shares from round to round, the verdicts, and what changed.

import { get, isAbort, onKey, poll, post, roundPath, sentenceOf } from "../api.js";
import { frame, numeric } from "../chart/frame.js";
import { lines } from "../chart/lines.js";
import { action, field, fill, h, notice } from "../dom.js";
import { compact, count, day, frequency, isolated, number, plural, since } from "../format.js";
import { failure } from "../key.js";
import { link, setQuery } from "../router.js";
import { asked } from "../round/header.js";
import { WIDE } from "../round/items.js";
import { VERDICTS } from "../round/verdict.js";
import { changesSentence, changesTable, ranges } from "./series/changes.js";
import { readSeries } from "./series/reader.js";

const SECONDS = 10;
const CLOSED_SECONDS = 60;
const AT_ONCE = 3; // requests for estimates
const [PANELS, MOST_PANELS] = [11, 59]; // items that are drawn, beside the number of reports
const FIELDS = {
  window: ["Rounds added up in a point", "1", 520],
  since: ["Compared with round", "the one before", null],
  question: ["Question", "1", 50],
};
const SIGNS = { bad: "▲", warn: "◆", good: "●", "": "○" }; // by the kind of a verdict

export async function show({ main, path: [name], query, signal }) {
  const settings = {}; // window, since and question as numbers; 0 for the usual one
  const control = ([key, [label, hint, max]]) => {
    const input = h("input", {
      type: "number",
      name: key,
      min: 1,
      max,
      value: query.get(key) ?? "",
      placeholder: hint,
    });
    const take = () => (settings[key] = input.validity.valid ? Number(input.value) : 0);
    input.addEventListener("change", () => {
      setQuery({ [key]: take() || null });
      again();
    });
    take();
    return field(label, input);
  };
  const controls = Object.entries(FIELDS).map(control);
  const forms = new Map();
  const estimates = new Map(); // {n, answer} by round and window; n is that of the round
  let entries = []; // with the `round` of the question, the oldest first
  let compared = {}; // {key, answer, error} of the last comparison
  let isAll = false;

  const head = h("header", { class: "title" }, h("h1", {}, name));
  const said = h("div", {});
  const lead = h("p", { class: "lead" });
  const attacks = h("p", {});
  const strip = h("ol", { class: "strip", "aria-label": "Verdicts of the rounds" });
  const changes = h("div", {});
  const changed = h(
    "section",
    { class: "card", hidden: true },
    h("h2", {}, "What changed"),
    changes,
  );
  const chart = frame({
    title: "Share of users by item",
    name: `${name}-series`,
    signal,
    caption: () => `Series ${name} · ${plural(entries.length, "round")} · ${day(new Date())}`,
  });
  const drawLines = lines(chart, signal);
  const all = action("", () => {
    isAll = !isAll;
    draw();
  });
  chart.plot.after(h("div", { class: "row" }, all));
  document.title = `${name} – LDPRecover`;
  chart.root.hidden = true;
  const fields = h("div", { class: "controls", hidden: true }, controls);
  fill(main, head, said, lead, attacks, strip, fields, chart.root, changed);

  const window = () => settings.window || 1;
  const answerOf = ({ round }) => estimates.get(`${round.id} ${window()}`)?.answer;

  /** Read the estimates that are new, the newest first, and draw them as they come. */
  async function readEstimates() {
    const size = window();
    const isKnown = ({ id, n }) => estimates.get(`${id} ${size}`)?.n === n;
    const missing = entries.map((entry) => entry.round).filter((round) => !isKnown(round));
    const next = async () => {
      const round = missing.pop();
      if (!round || size !== window()) return;
      const options = { signal, query: { window: settings.window || null } };
      const answer = await get(roundPath(round.id, "frequencies"), options);
      estimates.set(`${round.id} ${size}`, { n: round.n, answer });
      draw();
      await next();
    };
    await Promise.all(Array.from({ length: AT_ONCE }, next));
  }

  async function compare() {
    const last = entries.findLast((entry) => entry.round.n > 0)?.round;
    const before = entries.find((entry) => entry.number === settings.since)?.round;
    const body = { window: window(), since: before?.id ?? null };
    const key = JSON.stringify([last?.id, last?.n, body]);
    if (compared.key === key) return;
    compared = { key };
    if (!entries.some((entry) => entry.round.n && entry.number <= last.number - window())) return;
    try {
      compared.answer = await post(roundPath(last.id, "changes"), body, { signal });
    } catch (error) {
      if (isAbort(error)) throw error;
      compared.error = error;
    }
  }

  const again = poll(
    async () => {
      try {
        const read = await readSeries(name, forms, signal);
        const k = Math.min(settings.question || 1, read[0].rounds.length) - 1;
        entries = read.map((entry) => ({ ...entry, round: entry.rounds[k] }));
        showHead();
        showVerdicts();
        await Promise.all([readEstimates(), compare()]);
        fill(said);
        draw();
      } catch (error) {
        if (!isAbort(error)) fill(said, failure(error));
      }
      return entries.at(-1)?.state === "open" ? SECONDS : CLOSED_SECONDS;
    },
    SECONDS,
    signal,
  );
  onKey(() => {
    compared = {};
    again();
  }, signal);

  function showHead() {
    const { round, rounds, ...last } = entries.at(-1);
    const line = [
      `Series of ${plural(entries.length, rounds.length > 1 ? "form" : "round")}`,
      round.protocol.toUpperCase(),
      `ε = ${number(round.epsilon)}`,
      plural(round.domain_size, "item"),
      `number ${last.number} ${since(last)}`,
    ];
    fill(head, h("h1", {}, name), h("p", { class: "quiet" }, line.join(" · ")), asked(round));
    controls.at(-1).hidden = rounds.length < 2;
  }

  function showVerdicts() {
    const within = (attack) => {
      const found = entries.filter(({ round }) => round.verdict?.attack === attack);
      return found.length
        ? `${VERDICTS[attack].text} in ${ranges(found.map((each) => each.number))}. `
        : "";
    };
    const text = within("near_certain") + within("possible");
    attacks.textContent = text && `${text}The lines have their reports too.`;
    const items = entries.map(({ number, round }) => {
      const { text, kind } = VERDICTS[round.verdict?.attack ?? "untested"];
      const words = `Round ${number}: ${text}, ${plural(round.n, "report")}`;
      const attributes = { href: link(["rounds", round.name]), class: kind, title: words };
      return h("li", {}, h("a", { ...attributes, "aria-label": words }, number, " ", SIGNS[kind]));
    });
    const next = items.map((item) => item.textContent).join("");
    if (strip.textContent !== next) fill(strip, items); // else a link keeps the focus
  }

  function draw() {
    const counted = entries.filter((entry) => answerOf(entry)?.frequencies);
    chart.root.hidden = fields.hidden = !counted.length;
    changed.hidden = !compared.answer && !compared.error;
    if (counted.length) drawItems(counted, answerOf(counted.at(-1)));
    const isEmpty = entries.every((entry) => !entry.round.n);
    lead.textContent = isEmpty ? "No reports yet." : changesSentence(compared.answer);
    if (compared.answer) fill(changes, changesTable(compared.answer, isAll, signal));
    else if (compared.error) fill(changes, notice("", sentenceOf(compared.error)));
  }

  function drawItems(counted, { items, frequencies }) {
    const order = Array.from(items.keys()).sort((i, j) => frequencies[j] - frequencies[i]);
    const shown = order.slice(0, isAll ? MOST_PANELS : PANELS);
    const near = counted.filter(({ round }) => round.verdict?.attack === "near_certain");
    const attacked = new Set(near.map((entry) => entry.number));
    const byNumber = new Map(counted.map((entry) => [entry.number, entry]));
    const pointOf = (entry, i) => {
      const { frequencies: f, standard_errors: errors, numbers = [entry.number] } = answerOf(entry);
      const error = errors[i];
      const half = WIDE * error;
      const isBad = numbers.some((each) => attacked.has(each));
      return { x: entry.number, y: f[i], low: f[i] - half, high: f[i] + half, error, isBad };
    };
    const panels = shown.map((i) => ({
      title: isolated(items[i]),
      text: frequency(frequencies[i]),
      colour: "recovered",
      tick: (value) => `${number(100 * value)} %`,
      points: counted.map((entry) => pointOf(entry, i)),
    }));
    const reports = {
      title: "Reports of each round",
      text: count(counted.at(-1).round.n),
      colour: "collected",
      tick: compact,
      isCount: true,
      points: counted.map(({ number: x, round: { n } }) => ({ x, y: n, low: n, high: n })),
    };
    drawLines({
      panels: [...panels, reports],
      attacked,
      describePoint(k, { x, y, high }) {
        const item = shown[k];
        const of = `Round ${x}, ${day(byNumber.get(x).opened_at)}`;
        if (item === undefined) return `${of}: ${plural(y, "report")}`;
        const half = number(100 * (high - y), 2);
        return `${of}: ${isolated(items[item])} ${frequency(y)}, ± ${half} points at 95 %`;
      },
    });
    all.hidden = items.length <= PANELS;
    all.textContent = isAll ? "Show fewer items" : "Show more items";
    chart.setLegend([
      { name: "as collected, with 95 %", colour: "recovered", mark: "line" },
      ...(attacked.size ? [{ name: "with attacked rounds", colour: "bad", mark: "raised" }] : []),
    ]);
    const sum = `A point is the sum of ${window()} rounds, as far as they exist.`;
    const what = `${count(shown.length)} of ${plural(items.length, "item")}`;
    chart.describe(
      `${what} over ${plural(counted.length, "round")}; scales have one length. ${window() > 1 ? sum : ""}`,
    );
    const rows = counted.flatMap((entry) => order.map((i) => ({ entry, i, ...pointOf(entry, i) })));
    chart.setTable(
      [
        numeric("Round", (row) => row.x, String, "number"),
        { title: "Item", name: "item", kind: "text", value: (row) => items[row.i] },
        numeric("As collected", (row) => row.y, frequency, "frequency"),
        numeric(
          "± 95 %",
          (row) => row.error,
          (error) => frequency(WIDE * error),
          "standard_error",
        ),
        numeric("Reports", (row) => answerOf(row.entry).n, count, "n"),
        {
          title: "Verdict",
          name: "attack",
          kind: "text",
          value: (row) => row.entry.round.verdict?.attack ?? "",
        },
      ],
      rows,
      { pending: entries.some((entry) => !answerOf(entry)) },
    );
  }
}
