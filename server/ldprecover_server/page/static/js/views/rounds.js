// The list of rounds: a card each, with its verdict: a light, its text, and the most frequent items. A form is one card.

import { formPath, get, hasKey, onKey, poll, sentenceOf } from "../api.js";
import { fill, h, notice, svg } from "../dom.js";
import { isolated, number, plural, share, since } from "../format.js";
import { help } from "../help.js";
import { link } from "../router.js";
import { actionsMenu, asked } from "../round/header.js";
import { VERDICTS, maliciousShare, isSeen, noiseVerdict } from "../round/verdict.js";

const SECONDS = 3;
const PAGE = 100;
const BAR = 8; // width of a sparkline's bar with its gap
const HEIGHT = 24;
const WORST = ["bad", "warn", "", "good"]; // kinds of verdicts

export function show({ main, signal }) {
  const body = h("ul", { class: "ways plain" });
  const said = h("div", {});
  const more = h("button", { type: "button", hidden: true }, "Older rounds");
  const cards = new Map(); // by id: their menus keep the focus
  const empty = h("div", { hidden: true });
  const another = h("a", { class: "button main", href: "#/open", hidden: true }, "Open a round");
  let pages = 1; // of rounds that are shown, and read by each poll
  const forms = new Map(); // by id
  fill(
    main,
    h("div", { class: "row" }, h("h1", {}, "Rounds"), help("round", "a round"), another),
    said,
    empty,
    body,
    more,
  );

  let again;
  const draw = (rounds) => {
    const entries = [...new Set(rounds.map((round) => forms.get(round.form) ?? round))].map(
      (entry) => (entry.rounds ? summed(entry) : entry),
    );
    empty.hidden = rounds.length > 0;
    another.hidden = !empty.hidden;
    if (!empty.hidden && empty.children.length === 0) showEmpty();
    for (const entry of entries) {
      if (!cards.has(entry.id))
        cards.set(
          entry.id,
          card(entry, () => again()),
        );
      cards.get(entry.id).set(entry);
    }
    const wanted = entries.map((entry) => cards.get(entry.id).root);
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
    const parts = Map.groupBy(rounds, (round) => round.form);
    parts.delete(null);
    const read = async ([id, part]) => {
      if (forms.get(id)?.rounds.length === part.length) forms.get(id).rounds = part.toReversed();
      else forms.set(id, await get(formPath(id), { signal }));
    };
    await Promise.allSettled(Array.from(parts, read)); // until one is read its rounds have cards
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
    again();
  }, signal);
}

/** A form with the state, the times and the number of reports of its rounds. */
export function summed(form) {
  const { state, opened_at, closed_at } = form.rounds[0];
  const n = form.rounds.reduce((sum, round) => sum + round.n, 0);
  return { ...form, state, opened_at, closed_at, n };
}

/** The ε of one report to a form. */
export function epsilonOf({ rounds }) {
  const all = rounds.map((round) => round.epsilon);
  return `ε ${new Set(all).size > 1 ? "≤" : "="} ${number(Math.max(...all))}`;
}

/** Make the card of a round or a summed form; a round of a form has no actions. `set(entry)` updates it. */
export function card(first, changed) {
  let entry = first;
  const light = h("p", { class: "light" });
  const progress = h("p", {});
  const top = h("p", { class: "top", hidden: true });
  let drawn = ""; // the most frequent items in `top`
  const parameters = first.rounds
    ? ["Form", plural(first.rounds.length, "question"), epsilonOf(first)]
    : [
        first.protocol.toUpperCase(),
        `ε = ${number(first.epsilon)}`,
        plural(first.domain_size, "item"),
      ];
  const root = h(
    "li",
    {},
    h(
      "h2",
      {},
      h("a", { href: link([first.rounds ? "forms" : "rounds", first.name]) }, first.name),
    ),
    !first.form && actionsMenu(() => entry, changed),
    asked(first),
    light,
    progress,
    h("p", { class: "quiet" }, parameters.join(" · ")),
    top,
  );
  return {
    root,
    set(next) {
      entry = next;
      const { rounds, n, verdict } = entry;
      const { text, kind } = rounds ? worst(rounds) : glance(entry);
      root.className = `round ${kind}`;
      light.textContent = `● ${text}`;
      progress.textContent = `${plural(n, "report")}, ${since(entry)}`;
      top.hidden = !verdict?.top.length;
      const now = JSON.stringify(verdict);
      if (drawn !== now) fill(top, !top.hidden && mostFrequent(verdict));
      drawn = now;
    },
  };
}

/** The most frequent items as bars, and the first of them by name. */
function mostFrequent({ top, raised }) {
  const [{ label, estimate }] = top;
  const marked = top
    .filter(({ item }) => raised.includes(item))
    .map((each) => isolated(each.label));
  const raisedText = marked.length ? `; malicious reports raise ${marked.join(", ")}` : "";
  const bars = top.map((each, k) => {
    const height = Math.max(1, (HEIGHT * each.estimate) / estimate);
    const kind = raised.includes(each.item) ? "raised" : "";
    return svg("rect", { class: kind, x: BAR * k, y: HEIGHT - height, width: BAR - 2, height });
  });
  const size = { width: BAR * top.length - 2, height: HEIGHT };
  const text = `The ${plural(top.length, "most frequent item")}, first ${isolated(label)} ${share(estimate)}${raisedText}`;
  return [
    svg("svg", { ...size, role: "img", "aria-label": text }, ...bars),
    h("span", { "aria-hidden": "true" }, h("bdi", {}, isolated(label)), ` ${share(estimate)}`),
  ];
}

/** The worst of the verdicts in a form, among equals that of the most reports, and how many are as bad. */
function worst(rounds) {
  const all = rounds
    .map((round) => ({ ...glance(round), n: round.n }))
    .sort((a, b) => WORST.indexOf(a.kind) - WORST.indexOf(b.kind) || b.n - a.n);
  const [{ text, kind }] = all;
  const like = all.filter((each) => each.kind === kind).length;
  const where = like < all.length ? `, in ${like} of ${all.length} questions` : "";
  return { text: text + where, kind };
}

/** A round's verdict in a few words. */
function glance({ n, state, read_access: access, verdict }) {
  if (verdict) {
    const { text, kind } =
      noiseVerdict(verdict, verdict.top.length === 0) ?? VERDICTS[verdict.attack];
    const malicious = isSeen(verdict) && maliciousShare(verdict);
    return { text: malicious ? `${text}, ${malicious} malicious` : text, kind };
  }
  if (n === 0)
    return { text: state === "open" ? "No reports yet" : "Closed without reports", kind: "" };
  if (access === "key" && !hasKey()) return { text: "Needs a key", kind: "" };
  return { text: state === "open" ? "Collecting" : "Not tested yet", kind: "" };
}
