// Conclusions of a document: recoveries, attack, alarms and suspects.

import { h, notice } from "../dom.js";
import { percent, plural } from "../format.js";
import { alarmTests, concluded, suspectsTable, uselessness } from "../round/conclusions.js";

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
export function alarmed({ alarms }) {
  if (alarms === null) return null;
  return h("section", { class: "card" }, h("h2", {}, "Alarms"), alarmTests(alarms));
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
