// The results of a plan: a sentence, and a table by protocol.

import { numeric } from "../../chart/frame.js";
import { table } from "../../chart/table.js";
import { announce, fill, h, notice } from "../../dom.js";
import { bytes, compact, count, number } from "../../format.js";
import { link } from "../../router.js";

const points = (value) =>
  value === null || value === undefined
    ? "–"
    : Math.abs(value) >= 1
      ? count(100 * value)
      : number(100 * value);
const title = (protocol) => protocol.toUpperCase();

/** Make the elements of a plan's results; the returned function shows a response of GET /plan. */
export function results(place, signal) {
  const said = h("div", {});
  const ranking = h("section", { class: "card", hidden: true });
  place.append(said, ranking);

  return (answer) => {
    const able = answer.protocols.filter((each) => each.reason === null);
    fill(said, verdict(answer, able[0]));
    announce(said.textContent);
    fill(
      ranking,
      h("h2", {}, "Protocols, the one to take first"),
      protocols(answer, able, signal),
      refused(answer),
    );
    ranking.hidden = false;
  };
}

function verdict(answer, best) {
  if (!best)
    return notice(
      "bad",
      "No protocol can have that. The reasons are below: allow a larger error or lead, a larger epsilon, or more users.",
    );
  const what =
    answer.request.sum_of > 1
      ? `the sum of ${count(answer.request.sum_of)} estimates`
      : "each estimate";
  const targets = best.targets === 1 ? "one target" : `${best.targets} targets together`;
  return notice(
    "good",
    h(
      "p",
      {},
      h("strong", {}, `Take ${title(best.protocol)}. `),
      `With ${count(best.users)} users, ${count(best.domain_size)} items and epsilon ${number(best.epsilon)}, ${what} has a standard error of `,
      `${points(best.standard_error)} percentage points: ± ${points(best.margin)} at 95 %. An interval for all items at once is ± ${points(best.margin_of_all)}.`,
    ),
    h("p", {}, answer.accuracy.sentence),
    h(
      "p",
      {},
      `${number(100 * best.beta)} % fake users can raise the estimates of ${targets} by up to ${points(best.gain)} points `,
      "before anything is done about it.",
    ),
    h(
      "p",
      {},
      best.safe_lead === null ? "No lead" : `A lead of ${points(best.safe_lead)} points`,
      ` is safe from ${number(100 * best.beta)} % fake reports: the round's certificate will prove it.`,
    ),
    h(
      "p",
      {},
      `Whoever sees one report guesses its user's item right in ${number(100 * best.attacker_success_rate)} % of cases; `,
      `blind, in ${number(100 / best.domain_size)} %.`,
    ),
    h("p", {}, opening(best)),
  );
}

/** The link to the form that opens the planned round, and why no report need be stored. */
function opening({ protocol, epsilon, domain_size, retention }) {
  const form = h(
    "a",
    { href: link(["open"], { protocol, epsilon, domain_size, retention }) },
    "Open this round",
  );
  if (retention !== "none") return form;
  return [
    form,
    " with retention none: its tally is the histogram of its reports, so no method needs a stored report.",
  ];
}

function protocols(answer, able, signal) {
  const { solved } = answer;
  const SOLVED = {
    domain_size: ["Items ←", count],
    users: ["Users ←", count],
    epsilon: ["Epsilon ←", (value) => number(value)],
  };
  const [name, text] = SOLVED[solved] ?? [];
  const columns = [
    { title: "Protocol", kind: "text", value: (row) => title(row.protocol) },
    name && numeric(name, (row) => row[solved], text), // the others are the same for all
    numeric(name ? "Error, points" : "Error, points ←", (row) => row.standard_error, points),
    numeric("± 95 %", (row) => row.margin, points),
    numeric("All items, ±", (row) => row.margin_of_all, points),
    answer.request.gain === null
      ? numeric("Fakes gain, points", (row) => row.gain, points)
      : numeric("Fake users, %", (row) => row.beta, points),
    numeric("Safe lead, points", (row) => row.safe_lead, points),
    numeric("Guess, %", (row) => row.attacker_success_rate, points),
    numeric("Bytes a report", (row) => row.report_size, count),
    numeric(
      "Hashes",
      (row) => row.hash_tests,
      (value) => (value ? compact(value) : "none"),
    ),
    numeric("Stored", (row) => row.stored_bytes, bytes),
  ].filter(Boolean);
  return able.length ? table({ columns, rows: able, caption: "Protocols", signal }).root : null;
}

function refused(answer) {
  const reasons = answer.protocols.filter((each) => each.reason !== null);
  return reasons.length
    ? h(
        "ul",
        {},
        reasons.map((each) => h("li", {}, `Not with ${title(each.protocol)}: ${each.reason}.`)),
      )
    : null;
}
