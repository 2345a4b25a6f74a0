// Conclusions of a document: recoveries, attack, alarms and suspects.

import { numeric } from "../chart/frame.js";
import { table } from "../chart/table.js";
import { h, notice } from "../dom.js";
import { number, percent, plural } from "../format.js";
import { concluded, suspectsTable, uselessness } from "../round/conclusions.js";

const GIVES = {
  distribution: "a distribution",
  "sum-one": "of sum one, perhaps negative",
  frequencies: "frequencies, of any sum",
};

/** What the certificate proves of the leader; null without a certificate. */
export function certain({ certificate }) {
  if (!certificate) return null;
  const { sentence, assumption, least_malicious_share: least } = certificate;
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "What is proven"),
    h("p", {}, sentence),
    h(
      "p",
      {},
      least
        ? `The reports prove that at least ${percent(Math.floor(1e5 * least) / 1e5, 3)} of them did not come from honest users.`
        : "The reports do not prove that any of them is fake.",
    ),
    h("p", { class: "quiet" }, assumption),
  );
}

/** The result of each method as text; null without any. */
export function recovered({ recoveries, refused, frequencies }) {
  if (recoveries.length + refused.length === 0) return null;
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
        uselessness(each.method, frequencies.frequencies, each.recovered),
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

/** The alarms and their meaning; null without any. */
export function alarmed({ alarms }, signal) {
  if (alarms === null) return null;
  const raised = alarms.alarms.filter((each) => each.raised);
  const number4 = (value) => number(value, 4);
  const columns = [
    { title: "Alarm", kind: "text", value: (row) => row.name },
    {
      title: "",
      kind: "text",
      value: (row) => (row.raised ? "raised" : "not raised"),
      node: (row) =>
        h(
          "span",
          { class: row.raised ? "badge bad" : "badge" },
          row.raised ? "raised" : "not raised",
        ),
    },
    { title: "What it means", kind: "text", value: (row) => row.meaning },
    numeric("Statistic", (row) => row.statistic, number4),
    numeric("Threshold", (row) => row.threshold, number4),
  ];
  const some = `${plural(raised.length, "alarm")} raised: ${raised.map((each) => each.name).join(", ")}.`;
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "Alarms"),
    raised.length
      ? notice("bad", some)
      : h(
          "p",
          {},
          "None is raised, which proves nothing: users who lie about their value, and perturb the lie honestly, raise none.",
        ),
    alarms.reports_read
      ? null
      : h(
          "p",
          { class: "quiet" },
          "The reports are not all kept, so that tests which read them are left out.",
        ),
    table({ columns, rows: alarms.alarms, caption: "Alarms", signal }).root,
  );
}

/** The items that rose since earlier rounds of the series; null without these. */
export function suspected({ suspects }, signal) {
  if (suspects === null) return null;
  const since = `by more than noise explains since ${plural(suspects.earlier.length, "earlier round")} of the series.`;
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "Suspects"),
    h(
      "p",
      {},
      suspects.suspects.length
        ? `${plural(suspects.suspects.length, "item")} rose ${since} A true trend rises too.`
        : `No item rose ${since}`,
    ),
    suspects.suspects.length > 0 && suspectsTable(suspects.suspects, signal),
  );
}
