// The planner's advice for a new round: error and attackers' gain of each protocol, best first.

import { get, isAbort, sentenceOf } from "./api.js";
import { fill, h, notice } from "./dom.js";
import { bytes, count, percent, plural, points } from "./format.js";
import { link } from "./router.js";

const PAUSE = 300; // milliseconds between the last key and the request

/**
 * Make the box of advice, which asks the server when `form` changes. `wanted()` returns the form's
 * `{domain_size, epsilon, users}`, `use(plan)` takes a protocol and the retention planned for it,
 * `propose(plan)` is called with the best plan. `best()` resolves with the protocol to take.
 */
export function advice(form, wanted, use, propose, signal) {
  const said = h("div", {});
  let timer = 0;
  let asked = null;

  const plan = async (wish, stop) =>
    (await get("plan", { query: wish, signal: stop })).protocols.filter(
      (each) => each.reason === null,
    );

  const ask = async () => {
    const wish = wanted();
    asked?.abort();
    if (!Object.values(wish).every((value) => value > 0))
      return fill(
        said,
        h("p", { class: "quiet" }, "Name the items, and the advice on protocols stands here."),
      );
    asked = new AbortController();
    try {
      const plans = await plan(wish, AbortSignal.any([asked.signal, signal]));
      if (plans.length > 0) propose(plans[0]);
      fill(
        said,
        plans.length > 0 && sentence(plans[0], wish),
        table(plans, use),
        h("p", {}, h("a", { href: link(["plan"], wish) }, "All of the plan")),
      );
    } catch (error) {
      if (!isAbort(error)) fill(said, notice("bad", sentenceOf(error)));
    }
    return undefined;
  };
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, PAUSE);
  });
  signal.addEventListener("abort", () => clearTimeout(timer));
  ask();
  return {
    root: h("section", { class: "card" }, h("h2", {}, "What to expect"), said),
    best: async () => (await plan(wanted(), signal))[0].protocol,
  };
}

function sentence(best, { users, epsilon }) {
  return h(
    "p",
    { class: "lead" },
    `auto takes ${best.protocol.toUpperCase()}: with ${count(users)} users and ε = ${epsilon} the estimate of an item is right to ± ${points(best.margin)}.${best.retention === "none" ? " Its counts determine its reports, so the server need not keep these: retention none." : ""}`,
  );
}

function table(plans, use) {
  const titles = [
    "Error bar, ±",
    "Bytes a report",
    "Stored",
    `${percent(plans[0]?.beta, 0)} fake reports add to ${plural(plans[0]?.targets ?? 0, "item")}`,
  ];
  const row = (each, k) =>
    h(
      "tr",
      {},
      h(
        "th",
        { scope: "row" },
        `${each.protocol.toUpperCase()} `,
        k === 0 && h("span", { class: "badge good" }, "recommended"),
      ),
      h("td", { class: "number" }, points(each.margin)),
      h("td", { class: "number" }, count(each.report_size)),
      h("td", { class: "number" }, bytes(each.stored_bytes)),
      h("td", { class: "number" }, `up to ${points(each.worst.rise)}`),
      h(
        "td",
        {},
        h(
          "button",
          {
            type: "button",
            class: "small",
            "aria-label": `Use ${each.protocol}`,
            onclick: () => use(each),
          },
          "Use it",
        ),
      ),
    );
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of protocols" },
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", { scope: "col" }, "Protocol"),
          titles.map((title) => h("th", { scope: "col", class: "number" }, title)),
          h("th", { scope: "col" }, h("span", { class: "hidden" }, "Choose")),
        ),
      ),
      h("tbody", {}, plans.map(row)),
    ),
  );
}
