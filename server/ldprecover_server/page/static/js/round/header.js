// Head of a round: description, progress, closing and deleting.

import { closeRound, deleteRound } from "../actions.js";
import { facts, fill, h } from "../dom.js";
import { count, number, plural, time } from "../format.js";
import { rates } from "../rate.js";
import { go, link } from "../router.js";

/** Make the head of a round's view; `show(round, stats)` updates it, `stats` may be null. */
export function header(round, signal) {
  const list = h("div", {});
  const rate = rates();
  const state = h("span", {});
  const close = h(
    "button",
    {
      type: "button",
      onclick: async () =>
        (await closeRound(round)) && show(Object.assign(round, { state: "closed" }), null),
    },
    "Close",
  );
  const remove = h(
    "button",
    {
      type: "button",
      class: "danger",
      onclick: async () => (await deleteRound(round)) && !signal.aborted && go(["rounds"]),
    },
    "Delete",
  );
  let refused = 0;
  const show = (now, stats) => {
    if (stats) refused = Object.values(stats.refusals).reduce((sum, each) => sum + each, 0);
    const speed = rate("n", now.n);
    close.hidden = now.state !== "open";
    fill(state, h("span", { class: `badge ${now.state === "open" ? "good" : ""}` }, now.state));
    fill(
      list,
      facts([
        ["Reports", h("strong", {}, count(now.n))],
        ["Reports/s", speed === null ? null : number(speed)],
        ["Refused submissions", refused ? count(refused) : null],
        [
          "Set aside",
          now.quarantined &&
            plural(now.quarantined.sizes + (now.quarantined.repeats ?? 0), "report"),
        ],
        ["Closed", now.closed_at && time(now.closed_at)],
      ]),
    );
  };
  // Apart from the parts that are redrawn, so its link keeps the focus.
  const rest = facts([
    ["State", state],
    ["Protocol", round.protocol.toUpperCase()],
    ["ε", number(round.epsilon)],
    ["Items", count(round.items.length)],
    ["Series", round.series && h("a", { href: link(["series", round.series]) }, round.series)],
    ["Opened", time(round.opened_at)],
    ["Reports are kept", round.retention === "forever" ? null : round.retention],
  ]);
  show(round, null);
  return {
    root: h(
      "header",
      {},
      h("h1", {}, round.name),
      rest,
      list,
      h("div", { class: "controls" }, close, remove),
    ),
    show,
  };
}
