// The planner's advice for a new round: error and attackers' gain of each protocol, best first.

import { get, isAbort, sentenceOf } from "./api.js";
import { field, fill, h, notice } from "./dom.js";
import { bytes, count, number, percent, plural } from "./format.js";
import { link } from "./router.js";

const PAUSE = 300; // milliseconds between the last key and the request

/**
 * Make the box of advice, which asks the server when `form` changes. `wanted()` returns the form's
 * `{domain_size, epsilon}`, `use(protocol, retention)` selects a protocol and the retention planned
 * for it.
 */
export function advice(form, wanted, use, signal) {
  const users = h("input", {
    type: "number",
    name: "users",
    min: 1,
    max: 1e12,
    step: 1,
    value: 10_000,
  });
  const said = h("div", {});
  let timer = 0;
  let asked = null;

  const ask = async () => {
    const wish = { ...wanted(), users: Number(users.value) };
    asked?.abort();
    if (!Object.values(wish).every((value) => value > 0))
      return fill(
        said,
        h(
          "p",
          { class: "quiet" },
          "It needs the items, or how many they are, epsilon, and how many users you expect.",
        ),
      );
    asked = new AbortController();
    try {
      const found = await get("plan", {
        query: wish,
        signal: AbortSignal.any([asked.signal, signal]),
      });
      fill(
        said,
        table(
          found.protocols.filter((each) => each.reason === null),
          use,
        ),
        h(
          "p",
          {},
          h("a", { href: link(["plan"], wish) }, "All of the plan"),
          ", with the attacks and what recoveries leave of them.",
        ),
      );
    } catch (error) {
      if (!isAbort(error)) fill(said, notice("bad", sentenceOf(error)));
    }
    return undefined;
  };
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(ask, PAUSE);
  };
  for (const place of [form, users]) place.addEventListener("input", soon);
  signal.addEventListener("abort", () => clearTimeout(timer));
  ask();
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "Which protocol"),
    h("div", { class: "controls" }, field("Users that you expect", users)),
    said,
  );
}

function table(plans, use) {
  const points = (value) => `${number(100 * value)} points`;
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
          [
            "Standard error",
            "Bytes a report",
            "Stored",
            `${percent(plans[0]?.beta, 0)} fakes add to ${plural(plans[0]?.targets ?? 0, "item")}`,
          ].map((title) => h("th", { scope: "col", class: "number" }, title)),
          h("th", { scope: "col" }, h("span", { class: "hidden" }, "Choose")),
        ),
      ),
      h(
        "tbody",
        {},
        plans.map((each, k) =>
          h(
            "tr",
            {},
            h(
              "th",
              { scope: "row" },
              `${each.protocol.toUpperCase()} `,
              k === 0 && h("span", { class: "badge good" }, "take this"),
            ),
            h("td", { class: "number" }, points(each.standard_error)),
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
                  onclick: () => use(each.protocol, each.retention),
                },
                "Use it",
              ),
            ),
          ),
        ),
      ),
    ),
  );
}
