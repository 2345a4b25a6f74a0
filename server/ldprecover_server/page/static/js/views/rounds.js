// The list of rounds with progress and alarms.

import { get, hasKey, poll, sentenceOf } from "../api.js";
import { closeRound, deleteRound } from "../actions.js";
import { fill, h, notice } from "../dom.js";
import { count, number, time } from "../format.js";
import { link } from "../router.js";
import { rates } from "../rate.js";

const SECONDS = 3;
const PAGE = 100;
const COLUMNS = [
  ["Round"],
  ["State"],
  ["Protocol", "wide"],
  ["ε", "number wide"],
  ["Items", "number wide"],
  ["Reports", "number"],
  ["Reports/s", "number wide"],
  ["Alarms"],
  ["Opened", "wide"],
  ["Series", "wide"],
  [""],
];

export async function show(context) {
  if (context.path.length > 0) {
    const round = await import("../round/view.js");
    return round.show({ ...context, id: context.path[0] });
  }
  return list(context);
}

function list({ main, signal }) {
  const body = h("tbody");
  const said = h("div", {});
  const more = h("button", { type: "button", hidden: true }, "Older rounds");
  const rate = rates();
  const lines = new Map(); // row by id: its buttons keep the focus
  let older = [];

  const place = h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of rounds" },
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          COLUMNS.map(([title, kind]) =>
            h(
              "th",
              { scope: "col", class: kind },
              title || h("span", { class: "hidden" }, "Actions"),
            ),
          ),
        ),
      ),
      body,
    ),
  );
  const empty = h(
    "p",
    { hidden: true },
    "No round has been opened yet. ",
    h("a", { href: "#/open" }, "Open the first"),
    ", or run ",
    h("code", {}, "ldprecover demo"),
    ".",
  );
  fill(
    main,
    h(
      "div",
      { class: "head row" },
      h("h1", {}, "Rounds"),
      h("a", { class: "button main", href: "#/open" }, "Open a round"),
    ),
    said,
    empty,
    place,
    more,
  );

  let again;
  const draw = (rounds) => {
    empty.hidden = rounds.length > 0;
    place.hidden = rounds.length === 0;
    for (const round of rounds) {
      if (!lines.has(round.id))
        lines.set(
          round.id,
          row(round.id, () => again()),
        );
      lines.get(round.id).set(round, rate(round.id, round.n));
    }
    const wanted = rounds.map((round) => lines.get(round.id).root);
    if (
      wanted.length !== body.children.length ||
      wanted.some((each, i) => each !== body.children[i])
    )
      body.replaceChildren(...wanted);
  };

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
}

function row(id, changed) {
  const cells = Object.fromEntries(
    ["state", "n", "rate", "alarms"].map((name) => [
      name,
      h("td", { class: { n: "number", rate: "number wide" }[name] }),
    ]),
  );
  let round = null;
  const act = (what) => async () => {
    if (await what(round)) changed();
  };
  const close = h("button", { type: "button", class: "small", onclick: act(closeRound) }, "Close");
  const remove = h(
    "button",
    { type: "button", class: "small danger", onclick: act(deleteRound) },
    "Delete",
  );
  const root = h("tr");
  return {
    root,
    set(next, perSecond) {
      if (!round) {
        close.setAttribute("aria-label", `Close ${next.name}`);
        remove.setAttribute("aria-label", `Delete ${next.name}`);
        fill(
          root,
          h("th", { scope: "row" }, h("a", { href: link(["rounds", next.name]) }, next.name)),
          cells.state,
          h("td", { class: "wide" }, next.protocol.toUpperCase()),
          h("td", { class: "number wide" }, number(next.epsilon)),
          h("td", { class: "number wide" }, count(next.domain_size)),
          cells.n,
          cells.rate,
          cells.alarms,
          h("td", { class: "wide" }, time(next.opened_at)),
          h(
            "td",
            { class: "wide" },
            next.series && h("a", { href: link(["series", next.series]) }, next.series),
          ),
          h("td", {}, h("div", { class: "pair" }, close, remove)),
        );
      }
      round = next;
      fill(
        cells.state,
        h("span", { class: `badge ${next.state === "open" ? "good" : ""}` }, next.state),
      );
      fill(cells.n, count(next.n));
      fill(cells.rate, perSecond === null ? "–" : number(perSecond));
      fill(cells.alarms, glance(next));
      close.hidden = next.state !== "open";
    },
  };
}

const mayRead = (round) => round.read_access === "public" || hasKey();

function glance(round) { return round.verdict?.attack ?? ""; }
