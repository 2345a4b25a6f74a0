// Conclusions of a document: recoveries, attack, alarms and suspects.

import { table } from "../chart/table.js";
import { h, notice } from "../dom.js";
import { count, frequency, number, percent, plural } from "../format.js";
import { concluded } from "../round/panels.js";
import { isProjection } from "../round/simplex.js";

const GIVES = {
  distribution: "a distribution",
  "sum-one": "of sum one, perhaps negative",
  frequencies: "frequencies, of any sum",
};

/** The most important conclusions, in a few sentences. */
export function summary({ alarms, suspects, recoveries }) {
  const said = [];
  const raised = alarms?.alarms.filter((each) => each.raised) ?? [];
  if (raised.length)
    said.push(
      `${plural(raised.length, "alarm")} raised: ${raised.map((each) => each.name).join(", ")}.`,
    );
  for (const { method, conclusions } of recoveries) {
    const probability = conclusions?.attack_probability ?? null;
    if (probability === null) continue;
    const share =
      conclusions.beta === null || probability < 0.5
        ? ""
        : `, visible in ${percent(conclusions.beta)} of all reports,`;
    said.push(`${method} gives an attack${share} a probability of ${number(probability, 2)}.`);
  }
  if (suspects?.suspects.length)
    said.push(`${plural(suspects.suspects.length, "item")} rose by more than noise explains.`);
  const bad =
    raised.length > 0 ||
    recoveries.some((each) => (each.conclusions?.attack_probability ?? 0) >= 0.5);
  if (!bad)
    said.push(
      "Nothing here proves that nobody lied: lies that are perturbed honestly cannot be told from users.",
    );
  return notice(bad ? "bad" : "", said.join(" "));
}

/** What the certificate proves of the leader; null without a certificate. */
export function certain({ certificate }) {
  if (!certificate) return null;
  const { sentence, assumption, least_malicious_share: least } = certificate;
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "What is certain"),
    h("p", {}, sentence),
    h(
      "p",
      {},
      least
        ? `The reports prove that at least ${percent(Math.floor(1e5 * least) / 1e5, 3)} of them did not come from honest users.`
        : "The reports do not prove that any of them was forged.",
    ),
    h("p", { class: "quiet" }, assumption),
  );
}

/** The result of each method as text. */
export function recovered({ recoveries, refused, frequencies }) {
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "Recoveries"),
    recoveries.map((each) =>
      h(
        "div",
        {},
        h("h3", {}, each.method),
        h(
          "p",
          { class: "quiet" },
          `${each.summary}${/[.!?]$/.test(each.summary) ? "" : "."} What it gives is ${GIVES[each.gives] ?? each.gives}.`,
        ),
        each.method !== "norm-sub" &&
          isProjection({ poisoned: frequencies.frequencies, recovered: each.recovered }) &&
          notice(
            "",
            "This does not help beyond plain projection: the result is the projection of what was reported on the simplex, and nothing more.",
          ),
        h(
          "ul",
          {},
          each.notes.map((said) => h("li", {}, said)),
        ),
        each.conclusions && concluded(each.conclusions),
      ),
    ),
    refused.map((each) =>
      notice("", `No recovery by ${each.method}: ${each.reason}.`.replace(/\.\.$/, ".")),
    ),
  );
}

/** The alarms and their meaning. */
export function alarmed({ alarms, no_alarms: reason }, signal) {
  const raised = alarms?.alarms.filter((each) => each.raised) ?? [];
  const columns = [
    { title: "Alarm", kind: "text", value: (row) => row.name },
    {
      title: "",
      kind: "text",
      value: (row) => (row.raised ? "RAISED" : "silent"),
      node: (row) =>
        h("span", { class: row.raised ? "badge bad" : "badge" }, row.raised ? "raised" : "silent"),
    },
    { title: "What it means", kind: "text", value: (row) => row.meaning },
    {
      title: "Statistic",
      kind: "number",
      value: (row) => row.statistic,
      text: (value) => number(value, 4),
    },
    {
      title: "Threshold",
      kind: "number",
      value: (row) => row.threshold,
      text: (value) => number(value, 4),
    },
  ];
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "Alarms"),
    alarms === null
      ? notice("", `No alarms: ${reason}`)
      : [
          raised.length
            ? notice(
                "bad",
                `${plural(raised.length, "alarm")} raised: ${raised.map((each) => each.name).join(", ")}.`,
              )
            : h(
                "p",
                {},
                "All are silent, which proves nothing: users who lie about their value, and perturb the lie honestly, raise none.",
              ),
          alarms.reports_read
            ? null
            : h(
                "p",
                { class: "quiet" },
                "The reports are not all kept, so that tests which read them are left out.",
              ),
          table({ columns, rows: alarms.alarms, caption: "Alarms", signal }).root,
        ],
  );
}

/** The items that rose since earlier rounds of the series. */
export function suspected({ suspects, no_suspects: reason }, signal) {
  const columns = [
    { title: "Item", kind: "text", value: (row) => row.label },
    { title: "Before", kind: "number", value: (row) => row.before, text: frequency },
    { title: "Now", kind: "number", value: (row) => row.now, text: frequency },
    {
      title: "Standard errors",
      kind: "number",
      value: (row) => row.z,
      text: (value) => number(value),
    },
  ];
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "Suspects"),
    suspects === null
      ? h("p", {}, `Nothing to compare with: ${reason}`)
      : [
          h(
            "p",
            {},
            suspects.suspects.length
              ? `${plural(suspects.suspects.length, "item")} rose by more than noise explains since ${plural(suspects.earlier.length, "earlier round")} of the series. A true trend rises too.`
              : `No item rose by more than noise explains since ${plural(suspects.earlier.length, "earlier round")} of the series.`,
          ),
          suspects.suspects.length
            ? table({
                columns,
                rows: suspects.suspects,
                caption: `Suspects, ${count(suspects.suspects.length)}`,
                signal,
              }).root
            : null,
        ],
  );
}
