// The list of rounds: a row each, with its most frequent item, people, verdict and state. A form or series is one row.

import { formPath, get, hasKey, onKey, poll, roundPath, sentenceOf } from "../api.js";
import { fill, h, notice, svg } from "../dom.js";
import { count, isolated, number, plural, share, since } from "../format.js";
import { help } from "../help.js";
import { link } from "../router.js";
import { actionsMenu } from "../round/header.js";
import { isBlurred } from "../round/items.js";
import { BLURRED, VERDICTS, maliciousShare, isSeen, noiseVerdict } from "../round/verdict.js";

const SECONDS = 3;
const PAGE = 100;
const AT_ONCE = 2; // frequencies that are read at a time, of rows in view
const MOST_ITEMS = 1000; // of a round whose frequencies are read
const GROWTH = 1.1; // they are read again after a tenth more reports
const COLUMNS = {
  name: "Round",
  top: "Top answer",
  people: "People",
  verdict: "Verdict",
  state: "State",
};
const WORST = ["bad", "warn", "", "good"]; // kinds of verdicts

export function show({ main, signal }) {
  const body = h("tbody", { role: "rowgroup" });
  const table = h(
    "table",
    { class: "rounds", role: "table", "aria-label": "Rounds" },
    h(
      "thead",
      { role: "rowgroup" },
      h(
        "tr",
        { role: "row" },
        Object.entries(COLUMNS).map(([name, title]) =>
          h("th", { scope: "col", role: "columnheader", class: name }, title),
        ),
        h("th", { role: "columnheader" }, h("span", { class: "hidden" }, "Actions")),
      ),
    ),
    body,
  );
  const said = h("div", {});
  const more = h("button", { type: "button", hidden: true }, "Older rounds");
  const rows = new Map(); // by id: their menus keep the focus
  const reader = topReader(signal);
  const empty = h("div", { hidden: true });
  const another = h("a", { class: "button main", href: "#/open", hidden: true }, "Open a round");
  let pages = 1; // of rounds that are shown, and read by each poll
  const forms = new Map(); // by id
  fill(
    main,
    h("div", { class: "row" }, h("h1", {}, "Rounds"), help("round", "a round"), another),
    said,
    empty,
    table,
    more,
  );

  let again;
  const draw = (rounds) => {
    const series = Map.groupBy(rounds, (round) => round.series);
    const entryOf = (round) => (round.series ? series.get(round.series) : forms.get(round.form));
    const entries = [...new Set(rounds.map((round) => entryOf(round) ?? round))].map((entry) => {
      if (Array.isArray(entry)) return ofSeries(entry);
      return entry.rounds ? summed(entry) : entry;
    });
    empty.hidden = rounds.length > 0;
    table.hidden = rounds.length === 0;
    another.hidden = !empty.hidden;
    if (!empty.hidden && empty.children.length === 0) showEmpty();
    for (const entry of entries) {
      if (!rows.has(entry.id))
        rows.set(
          entry.id,
          row(entry, reader, () => again()),
        );
      rows.get(entry.id).set(entry);
    }
    const wanted = entries.map((entry) => rows.get(entry.id).root);
    const isSame =
      wanted.length === body.children.length &&
      wanted.every((each, i) => each === body.children[i]);
    if (!isSame) body.replaceChildren(...wanted);
  };

  async function showEmpty() {
    const { firstSteps } = await import("./empty.js");
    if (!signal.aborted) fill(empty, firstSteps());
  }

  /** Update the forms of some rounds; one that is new, or has other rounds as well, is read. */
  async function readForms(rounds) {
    const parts = Map.groupBy(rounds, (round) => (round.series ? null : round.form));
    parts.delete(null);
    const read = async ([id, part]) => {
      if (forms.get(id)?.rounds.length === part.length) forms.get(id).rounds = part.toReversed();
      else forms.set(id, await get(formPath(id), { signal }));
    };
    await Promise.allSettled(Array.from(parts, read)); // until one is read its rounds have rows
  }

  more.addEventListener("click", () => {
    pages += 1;
    again();
  });

  again = poll(
    async () => {
      try {
        const rounds = [];
        let page;
        do {
          const query = { limit: PAGE, before: rounds.at(-1)?.id };
          page = (await get("rounds", { query, signal })).rounds;
          rounds.push(...page);
        } while (page.length === PAGE && rounds.length < pages * PAGE);
        await readForms(rounds);
        fill(said);
        more.hidden = page.length < PAGE;
        draw(rounds);
      } catch (error) {
        if (!signal.aborted) fill(said, notice("bad", sentenceOf(error)));
      }
      return SECONDS * pages;
    },
    SECONDS,
    signal,
  );
  onKey(() => {
    forms.clear();
    reader.forget();
    again();
  }, signal);
}

/** A form with the state, the times and the number of reports of its rounds. */
export function summed(form) {
  const { state, opened_at, closed_at } = form.rounds[0];
  const n = form.rounds.reduce((sum, round) => sum + round.n, 0);
  return { ...form, state, opened_at, closed_at, n };
}

/** The row of a series: its last round or form, with all of its rounds that were read, the newest first. */
function ofSeries(rounds) {
  const [last] = rounds;
  const numbers = Map.groupBy(rounds, (round) => round.number);
  const n = numbers.get(last.number).reduce((sum, round) => sum + round.n, 0);
  const [name, question] = [last.series, last.form ? null : last.question];
  const series = { id: `series ${name}`, name, question, isSeries: true, size: numbers.size };
  return { ...last, ...series, rounds, n };
}

/** The ε of one report to a form. */
export function epsilonOf({ rounds }) {
  const all = rounds.map((round) => round.epsilon);
  return `ε ${new Set(all).size > 1 ? "≤" : "="} ${number(Math.max(...all))}`;
}

/** Read the most frequent items, as collected, of the rows in view, few at a time. */
function topReader(signal) {
  const known = new Map(); // by id: {n, text}
  const waiting = new Map(); // by id: rows in view whose item is not known
  let running = 0;
  const next = async () => {
    if (running === AT_ONCE || signal.aborted) return;
    const [set, entry] = waiting.entries().next().value ?? [];
    if (!set) return;
    waiting.delete(set);
    running += 1;
    try {
      const answer = await get(roundPath(entry.id, "frequencies"), { signal });
      known.set(entry.id, { n: entry.n, text: collectedTop(answer) });
    } catch {
      known.set(entry.id, { n: entry.n, text: "" }); // its view says why
    } finally {
      running -= 1;
    }
    set(entry);
    next();
  };
  const seen = new Map(); // rows by element
  const observer = new IntersectionObserver((changes) => {
    for (const { target, isIntersecting } of changes) {
      const row = seen.get(target);
      row.isSeen = isIntersecting;
      if (isIntersecting) row.set(row.entry);
      else waiting.delete(row.set);
    }
  });
  signal.addEventListener("abort", () => observer.disconnect());
  return {
    forget: () => [known, waiting].forEach((map) => map.clear()),
    watch(row) {
      seen.set(row.root, row);
      observer.observe(row.root);
    },
    /** The text for a row without a verdict; its `set` is called again when there is one. */
    text(row) {
      const { id, n, domain_size: d, read_access: access } = row.entry;
      if (!n || d > MOST_ITEMS || (access === "key" && !hasKey())) return "";
      const last = known.get(id);
      if (row.isSeen && !(last && n < GROWTH * last.n)) {
        waiting.set(row.set, row.entry);
        next();
      }
      return last?.text ?? "";
    },
  };
}

/** The most frequent item of an answer of GET /frequencies. */
function collectedTop(answer) {
  const { frequencies, items, standard_errors: errors } = answer;
  const first = frequencies.reduce((best, each, i) => (each > frequencies[best] ? i : best), 0);
  if (isBlurred(answer) || (frequencies[first] > 1 && errors[first] > 0.2)) return BLURRED;
  return topText(items[first], frequencies[first]);
}

const topText = (label, value) => `${isolated(label)} ${share(Math.max(0, value))}`;

/** Make the row of a round or a summed form; `set(entry)` updates it. */
function row(first, reader, changed) {
  const cell = (name) => h("td", { role: "cell", class: name });
  const [top, people, verdict, state] = ["top", "people", "verdict", "state"].map(cell);
  const kind = first.isSeries && "Series";
  const title = [kind, first.title, first.question].filter(Boolean).join(": ");
  const actions = h("td", { role: "cell", class: "menu" });
  const self = {
    entry: first,
    isSeen: false,
    root: h(
      "tr",
      { role: "row" },
      h(
        "td",
        { role: "cell", class: "name" },
        h("a", { href: link([kindOf(first), first.name]) }, first.name),
        title && [" ", h("bdi", { class: "quiet" }, title)],
      ),
      top,
      people,
      verdict,
      state,
      actions,
    ),
    set(entry) {
      self.entry = entry;
      const { rounds, n, verdict: known } = entry;
      const { text, kind } = rounds ? worst(entry) : glance(entry, false);
      self.root.className = `round ${kind}`;
      verdict.textContent = kind ? `● ${text}` : text;
      people.textContent = count(n);
      state.textContent = since(entry);
      if (entry.isSeries) fill(top, seriesTop(entry));
      else
        top.textContent = rounds
          ? `Form of ${plural(rounds.length, "question")}`
          : known
            ? verdictTop(known)
            : reader.text(self);
    },
  };
  if (!first.form && !first.isSeries) actions.append(actionsMenu(() => self.entry, changed));
  reader.watch(self);
  return self;
}

function kindOf({ isSeries, rounds }) {
  if (isSeries) return "series";
  return rounds ? "forms" : "rounds";
}

/** The most frequent item of the last verdict of a series, and a line of its shares. */
function seriesTop({ form, rounds, size }) {
  const judged = rounds.filter(({ verdict }) => verdict?.top.length);
  if (form || !judged.length) return plural(size, form ? "form" : "round");
  const { label, estimate } = judged[0].verdict.top[0];
  const values = judged.map(({ verdict }) => verdict.top.find((each) => each.label === label));
  return [sparkline(values.reverse().map((each) => each?.estimate ?? 0)), topText(label, estimate)];
}

function sparkline(values) {
  const most = Math.max(...values) || 1;
  const step = 46 / Math.max(1, values.length - 1);
  const points = values.map((value, k) => `${1 + k * step},${15 - (14 * value) / most}`);
  const line = svg("polyline", { points: points.join(" "), fill: "none" });
  return svg("svg", { class: "spark", viewBox: "0 0 48 16", "aria-hidden": "true" }, line);
}

/** The most frequent item of a verdict, and those that malicious reports raise. */
function verdictTop({ top, raised }) {
  if (!top.length) return BLURRED;
  const isRaised = raised.includes(top[0].item);
  return `${topText(top[0].label, top[0].estimate)}${isRaised ? ", raised by fake reports" : ""}`;
}

/** The worst of the verdicts in a form, among equals that of the most reports, and how many are as bad; in a series the
 * last one unless reports tell of attacks. */
function worst({ rounds, isSeries }) {
  const all = rounds
    .map((round) => ({ ...glance(round), n: round.n }))
    .sort((a, b) => WORST.indexOf(a.kind) - WORST.indexOf(b.kind) || b.n - a.n);
  const [{ text, kind }] = all;
  if (isSeries && !["bad", "warn"].includes(kind)) return glance(rounds[0]);
  const like = all.filter((each) => each.kind === kind).length;
  if (isSeries) return { text: `${text.split(",")[0]} in ${like} of ${all.length} rounds`, kind };
  const where = like < all.length ? `, in ${like} of ${all.length} questions` : "";
  return { text: text + where, kind };
}

/** A round's verdict in a few words. */
function glance({ n, state, read_access: access, verdict }, isNoise = verdict?.top.length === 0) {
  if (verdict) {
    const { text, kind } = noiseVerdict(verdict, isNoise) ?? VERDICTS[verdict.attack];
    const malicious = isSeen(verdict) && maliciousShare(verdict);
    return { text: malicious ? `${text}, ${malicious} malicious` : text, kind };
  }
  if (n === 0)
    return { text: state === "open" ? "No reports yet" : "Closed without reports", kind: "" };
  if (access === "key" && !hasKey()) return { text: "Needs a key", kind: "" };
  return { text: state === "open" ? "Collecting" : "Not tested yet", kind: "" };
}
