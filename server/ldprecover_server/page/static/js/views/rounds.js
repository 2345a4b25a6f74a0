// The list of rounds: a card each, with its verdict: a light, its text, and the most frequent items.

import { get, hasKey, onKey, poll, sentenceOf } from "../api.js";
import { fill, h, menu, notice, svg } from "../dom.js";
import { day, isolated, number, plural, share } from "../format.js";
import { help } from "../help.js";
import { link } from "../router.js";
import { asked } from "../round/header.js";
import { VERDICTS, fakeShare, isSeen, noiseVerdict } from "../round/verdict.js";

const SECONDS = 3;
const PAGE = 100;
const BAR = 8; // width of a sparkline's bar with its gap
const HEIGHT = 24;

export function show({ main, signal }) {
  const body = h("ul", { class: "ways plain" });
  const said = h("div", {});
  const more = h("button", { type: "button", hidden: true }, "Older rounds");
  const cards = new Map(); // by id: their menus keep the focus
  const empty = h("div", { hidden: true });
  const another = h("a", { class: "button main", href: "#/open", hidden: true }, "Open a round");
  let older = [];
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
    empty.hidden = rounds.length > 0;
    another.hidden = !empty.hidden;
    if (!empty.hidden && empty.children.length === 0) showEmpty();
    for (const round of rounds) {
      if (!cards.has(round.id))
        cards.set(
          round.id,
          card(round, () => again()),
        );
      cards.get(round.id).set(round);
    }
    const wanted = rounds.map((round) => cards.get(round.id).root);
    const isSame =
      wanted.length === body.children.length &&
      wanted.every((each, i) => each === body.children[i]);
    if (!isSame) body.replaceChildren(...wanted);
  };

  async function showEmpty() {
    const { firstSteps } = await import("./empty.js");
    if (!signal.aborted) fill(empty, firstSteps());
  }

  let latest = [];
  more.addEventListener("click", async () => {
    try {
      const last = (older.at(-1) ?? latest.at(-1)).id;
      const { rounds } = await get("rounds", { query: { limit: PAGE, before: last }, signal });
      older = [...older, ...rounds];
      more.hidden = rounds.length < PAGE;
      draw([...latest, ...older]);
    } catch (error) {
      if (!signal.aborted) fill(said, notice("bad", sentenceOf(error)));
    }
  });

  again = poll(
    async () => {
      try {
        latest = (await get("rounds", { query: { limit: PAGE }, signal })).rounds;
        fill(said);
        if (older.length === 0) more.hidden = latest.length < PAGE;
        const ids = new Set(latest.map((round) => round.id));
        older = older.filter((round) => !ids.has(round.id));
        draw([...latest, ...older]);
      } catch (error) {
        if (!signal.aborted) fill(said, notice("bad", sentenceOf(error)));
      }
    },
    SECONDS,
    signal,
  );
  onKey(() => {
    older = []; // read with the key of before
    again();
  }, signal);
}

function card(first, changed) {
  let round = first;
  const act = (what) => async () => {
    const actions = await import("../actions.js");
    if (await actions[what](round)) changed();
  };
  const light = h("p", { class: "light" });
  const progress = h("p", {});
  const top = h("p", { class: "top", hidden: true });
  let drawn = ""; // the most frequent items in `top`
  const actions = menu(`Actions on ${round.name}`, () => [
    round.state === "open" && ["Close the round", act("closeRound")],
    ["Delete the round", act("deleteRound"), "danger"],
  ]);
  const root = h(
    "li",
    {},
    h("h2", {}, h("a", { href: link(["rounds", round.name]) }, round.name)),
    actions,
    asked(round),
    light,
    progress,
    h(
      "p",
      { class: "quiet" },
      `${round.protocol.toUpperCase()} · ε = ${number(round.epsilon)} · ${plural(round.domain_size, "item")}`,
    ),
    top,
  );
  return {
    root,
    set(next) {
      round = next;
      const { text, kind } = glance(round);
      root.className = `round ${kind}`;
      light.textContent = `● ${text}`;
      const date =
        round.state === "open"
          ? `open since ${day(round.opened_at)}`
          : `closed ${day(round.closed_at)}`;
      progress.textContent = `${plural(round.n, "report")}, ${date}`;
      top.hidden = !round.verdict?.top.length;
      const now = JSON.stringify(round.verdict);
      if (drawn !== now) fill(top, !top.hidden && mostFrequent(round.verdict));
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
  const fake = marked.length ? `; fake reports raise ${marked.join(", ")}` : "";
  const bars = top.map((each, k) => {
    const height = Math.max(1, (HEIGHT * each.estimate) / estimate);
    const kind = raised.includes(each.item) ? "raised" : "";
    return svg("rect", { class: kind, x: BAR * k, y: HEIGHT - height, width: BAR - 2, height });
  });
  const size = { width: BAR * top.length - 2, height: HEIGHT };
  const text = `The ${plural(top.length, "most frequent item")}, first ${isolated(label)} ${share(estimate)}${fake}`;
  return [
    svg("svg", { ...size, role: "img", "aria-label": text }, ...bars),
    h("span", { "aria-hidden": "true" }, h("bdi", {}, isolated(label)), ` ${share(estimate)}`),
  ];
}

/** A round's verdict in a few words. */
function glance({ n, state, read_access: access, verdict }) {
  if (verdict) {
    const { text, kind } =
      noiseVerdict(verdict, verdict.top.length === 0) ?? VERDICTS[verdict.attack];
    const fake = isSeen(verdict) && fakeShare(verdict);
    return { text: fake ? `${text}, ${fake} fake` : text, kind };
  }
  if (n === 0)
    return { text: state === "open" ? "No reports yet" : "Closed without reports", kind: "" };
  if (access === "key" && !hasKey()) return { text: "Needs a key", kind: "" };
  return { text: state === "open" ? "Collecting" : "Not tested yet", kind: "" };
}
