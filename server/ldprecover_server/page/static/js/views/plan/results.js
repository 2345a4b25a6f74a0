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
    fill(said, inWords(answer, able[0]));
    announce(said.textContent);
    fill(ranking, h("h2", {}, "Protocols, the one to take first"), protocols(answer, able, signal));
    ranking.hidden = able.length === 0;
  };
}

function inWords({ sentences }, best) {
  const [first, ...others] = sentences;
  return notice(
    best ? "good" : "bad",
    h("p", {}, h("strong", {}, first)),
    others.map((sentence) => h("p", {}, sentence)),
    best && h("p", {}, h("a", { href: opening(best) }, "Open this round")),
  );
}

/** The link to the form that opens the planned round. */
function opening({ protocol, epsilon, domain_size, retention }) {
  return link(["open"], { protocol, epsilon, domain_size, retention });
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
      ? numeric("Gain, points", (row) => row.gain, points)
      : numeric("Malicious users, %", (row) => row.beta, points),
    numeric("Unseen gain, points", (row) => row.unseen.gain, points),
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
  return table({ columns, rows: able, caption: "Protocols", signal }).root;
}
