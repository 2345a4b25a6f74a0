// What a method concludes about an attack, as text.

import { h } from "../dom.js";
import { percent, plural } from "../format.js";

const SHOWN = 20;

/** A method's conclusions about the attack. */
export function concluded(drawn) {
  const sure = drawn.attack_probability;
  return h(
    "div",
    {},
    h("h3", {}, "What it concludes"),
    h(
      "ul",
      {},
      sure !== null &&
        h(
          "li",
          {},
          "Some reports were made to mislead with probability ",
          h("strong", {}, percent(sure, sure > 0.995 || sure < 0.005 ? 1 : 0)),
          ".",
        ),
      drawn.beta !== null &&
        h(
          "li",
          {},
          "β, the visible share of fake reports, a lower bound: ",
          h("strong", {}, percent(drawn.beta)),
          drawn.beta_low !== null && ` (${percent(drawn.beta_low)} to ${percent(drawn.beta_high)})`,
          ".",
        ),
      drawn.dropped.map((each) =>
        h(
          "li",
          {},
          `Left out by the filter ${each.screen}: `,
          h("strong", {}, plural(each.reports, "report")),
          `, ${each.what}.`,
        ),
      ),
      drawn.suspects.length > 0 &&
        h(
          "li",
          {},
          "Suspects, with the probability that reports raised them: ",
          drawn.suspects
            .slice(0, SHOWN)
            .map((each, k) => [
              k > 0 && ", ",
              h("strong", {}, each.label),
              ` (${percent(each.probability, 0)})`,
            ]),
          drawn.suspects.length > SHOWN && " and others",
          ".",
        ),
      drawn.history_weight !== null &&
        h(
          "li",
          {},
          `The history is a guide to this round with probability ${percent(drawn.history_weight, 0)}.`,
        ),
    ),
  );
}
