// What a drill's round proves before and after the attack: sentences and claims.

import { h, notice } from "/page/js/dom.js";
import { count, number, plural } from "/page/js/format.js";

/** Make the part of the score, closed but for its summary. */
export function certificates({ items, truth, certificates: { before, after } }) {
  const refused = before.refused ?? after.refused;
  if (refused) return details("nothing", notice("", refused));
  const pairs = before.answers.map((answer, k) => [answer, after.answers[k]]);
  const leads = pairs.filter(([answer]) => answer.ahead);
  const certain = (k) => leads.filter((pair) => pair[k].certified).length;
  const inside = truth.filter((f, i) => f >= after.lower[i] && f <= after.upper[i]).length;
  const rows = pairs
    .filter(([answer]) => !answer.top)
    .map(([first, second]) =>
      first.ahead
        ? [
            first.ahead.map((index) => items[index]).join(" is ahead of "),
            proof(first),
            proof(second),
          ]
        : [`${plural(first.items.length, "target")} together`, range(first), range(second)],
    );
  return details(
    `${certain(0)} of ${plural(leads.length, "lead")} before the attack, ${certain(1)} after it`,
    h(
      "p",
      {},
      `This holds for every attack by at most ${number(100 * before.malicious_share)} % of the reports, the share of this drill, with a confidence of ${number(100 * after.confidence)} %. After the attack ${count(inside)} of ${count(items.length)} true frequencies are within their intervals.`,
    ),
    said("Before the attack", before),
    said("After the attack", after),
    table(rows),
  );
}

function details(proven, ...children) {
  return h(
    "details",
    { class: "card" },
    h("summary", {}, `What stays proven: ${proven}`),
    children,
  );
}

function said(when, { answers: [leader] }) {
  return notice(leader.certified ? "good" : "", h("strong", {}, `${when}: `), leader.sentence);
}

function table(rows) {
  const titles = ["Claim", "Before the attack", "After the attack"];
  const row = ([claim, ...cells]) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, claim),
      cells.map((cell) => h("td", {}, cell)),
    );
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "Claims" },
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          titles.map((title) => h("th", { scope: "col" }, title)),
        ),
      ),
      h("tbody", {}, rows.map(row)),
    ),
  );
}

function proof({ certified, tolerance }) {
  return [
    h("span", { class: `badge ${certified ? "good" : ""}` }, certified ? "certain" : "not certain"),
    tolerance === null ? "" : ` up to ${percent(tolerance, Math.floor)} forged`,
  ];
}

const range = ({ lower, upper }) =>
  `${percent(lower, Math.floor)} to ${percent(upper, Math.ceil)} of the users`;

/** A share as per cent with two decimals, rounded to the side where it is proven. */
const percent = (share, round) => `${number(round(1e4 * share) / 100, 6)} %`;
