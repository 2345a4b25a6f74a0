// What a method concludes about an attack, and whether it helps, as text and tables.

import { table } from "../chart/table.js";
import { h, notice } from "../dom.js";
import { count, isolated, number, percent, plural } from "../format.js";

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
          drawn.attack === "cannot_be_seen" && "The reports could not show an attack. ",
          "Probability of a visible attack: ",
          h("strong", {}, percent(sure, sure > 0.995 || sure < 0.005 ? 1 : 0)),
          ".",
        ),
      drawn.beta > 0 &&
        h(
          "li",
          {},
          "β, the share of fake reports: at least ",
          h("strong", {}, percent(drawn.beta)),
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
              h("strong", {}, isolated(each.label)),
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

/** Say of a method whose result is the projection of the estimates that it does not help; null of others. */
export function uselessness(method, estimates, recovered) {
  if (method === "norm-sub") return null;
  const plain = projected(estimates);
  if (!recovered.every((value, i) => Math.abs(value - plain[i]) < 1e-9)) return null;
  return notice(
    "",
    "This does not help beyond plain projection: the result is the projection of what was reported on the simplex, and nothing more.",
  );
}

/** The Euclidean projection on the probability simplex (Held, Wolfe and Crowder 1974). */
function projected(values) {
  const sorted = Float64Array.from(values).sort().reverse();
  let [sum, tau] = [0, 0];
  for (let k = 0; k < sorted.length; k++) {
    sum += sorted[k];
    const next = (sum - 1) / (k + 1);
    if (sorted[k] <= next) break;
    tau = next;
  }
  return Float64Array.from(values, (value) => Math.max(0, value - tau));
}

/** What an answer of GET /alarms says. */
export function alarmTests({ alarms, n, reports_read: read }) {
  const raised = alarms.filter((alarm) => alarm.raised).length;
  return [
    h(
      "p",
      {},
      raised
        ? h(
            "strong",
            {},
            `${plural(raised, "alarm is", "alarms are")} raised: honest users would hardly have sent these reports. `,
          )
        : "No alarm is raised. ",
      raised
        ? "An alarm says that something is wrong, not what the frequencies are without it."
        : "That proves nothing: who lies about a value and perturbs the lie honestly raises none.",
    ),
    h(
      "ul",
      { class: "plain" },
      alarms.map((alarm) =>
        h(
          "li",
          {},
          h(
            "span",
            { class: `badge ${alarm.raised ? "bad" : "good"}` },
            alarm.raised ? "raised" : "not raised",
          ),
          " ",
          h("strong", {}, alarm.name),
          ": ",
          `${number(alarm.statistic)}, raised above ${number(alarm.threshold)}. `,
          h("span", { class: "quiet" }, `${alarm.meaning}.`),
        ),
      ),
    ),
    h(
      "p",
      { class: "quiet" },
      `Tested at ${plural(n, "report")}, ${read ? "" : "from their counts alone, as not all are kept, "}each with a false-alarm rate of at most ${percent(alarms[0]?.rate ?? 0.001)}.`,
    ),
  ];
}
