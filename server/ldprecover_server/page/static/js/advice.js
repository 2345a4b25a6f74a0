// The planner's advice for a new round: error and attackers' gain of each protocol, best first.

import { get, isAbort, sentenceOf } from "./api.js";
import { numeric } from "./chart/frame.js";
import { table } from "./chart/table.js";
import { action, fill, h, notice } from "./dom.js";
import { MAX_EPSILON, bytes, count, percent, plural, points } from "./format.js";
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

  const plan = async (wish, stop) => {
    const { accuracy, protocols: all } = await get("plan", { query: wish, signal: stop });
    return { accuracy, plans: all.filter((each) => each.reason === null) };
  };

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
      const { accuracy, plans } = await plan(wish, AbortSignal.any([asked.signal, signal]));
      if (plans.length > 0) propose(plans[0]);
      fill(
        said,
        plans.length > 0 && sentence(plans[0], accuracy),
        wish.epsilon > MAX_EPSILON &&
          notice(
            "bad",
            `Surveys send no report above ε = ${MAX_EPSILON}, other clients only if told to.`,
          ),
        protocols(plans, use, signal),
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
    best: async () => (await plan(wanted(), signal)).plans[0].protocol,
  };
}

function sentence(best, accuracy) {
  return h(
    "p",
    { class: "lead" },
    `${accuracy.sentence} auto takes ${best.protocol.toUpperCase()}.${best.retention === "none" ? " Its counts determine its reports, so the server need not keep these: retention none." : ""}`,
  );
}

function protocols(plans, use, signal) {
  const [best] = plans;
  const columns = [
    {
      title: "Protocol",
      node: (row) =>
        h(
          "span",
          {},
          `${row.protocol.toUpperCase()} `,
          row === best && h("span", { class: "badge good" }, "recommended"),
        ),
    },
    numeric("Error bar, ±", (row) => row.margin, points),
    numeric("Bytes a report", (row) => row.report_size, count),
    numeric("Stored", (row) => row.stored_bytes, bytes),
    numeric(
      `${percent(best?.beta, 0)} malicious reports add to ${plural(best?.targets ?? 0, "item")}`,
      (row) => row.gain,
      (value) => `up to ${points(value)}`,
    ),
    {
      title: "Choose",
      node: (row) =>
        action("Use it", () => use(row), { class: "small", "aria-label": `Use ${row.protocol}` }),
    },
  ];
  return table({ columns, rows: plans, caption: "Protocols", signal }).root;
}
