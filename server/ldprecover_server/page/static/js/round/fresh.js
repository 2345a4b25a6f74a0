// A round without reports: how to report to it; and the address of a survey.

import { get, isAbort, sentenceOf } from "../api.js";
import { code } from "../code.js";
import { field, fill, h } from "../dom.js";
import { MAX_EPSILON, number } from "../format.js";
import { help } from "../help.js";
import { qrCode } from "./qr.js";

const SERVER = new URL(".", document.baseURI).href.replace(/\/$/, "");
const REACH = /^(localhost|127\.|\[::1\])/.test(location.hostname)
  ? "Only this machine can open this address. To ask others, put the server behind a public address with https."
  : location.protocol === "https:"
    ? "Anyone with this address can answer."
    : "Browsers report by https only: put the server behind an address with https.";
const MAX_TOTAL_EPSILON = 4; // that of the client's ledger
const ACCESS = {
  open: "Anyone can report.",
  key: "Reports need a report key: the operator makes one with ldprecover admin key. The survey takes no key.",
  ticket:
    "Reports need tickets: the operator makes them with ldprecover admin ticket. The survey asks for one, unless #ticket=TICKET ends its address.",
};

/** A card with the address of the survey of `query`, "round=NAME", for the largest ε that it asks for, and `more`. */
export function surveyCard(query, epsilon, more = null) {
  const survey = `${SERVER}/page/survey.html?${query}`;
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "Ask people"),
    h("p", {}, h("a", { class: "button main", href: survey, target: "_blank" }, "Open the survey")),
    h("p", {}, REACH),
    epsilon > MAX_EPSILON && h("p", {}, `The survey sends no report above ε = ${MAX_EPSILON}.`),
    qrCode(survey),
    h("p", { class: "mono" }, survey),
    more,
  );
}

/** Show how to report to a round, and what to expect of it. */
export function howToReport(round, signal) {
  const { name, access, epsilon, items } = round;
  const value = items[0];
  const json = JSON.stringify;
  const example = access === "ticket" ? null : rawReport(round); // a ticket decides its seed
  const isOpen = access === "open";
  const isHigh = epsilon > MAX_EPSILON;
  const options = [
    `--url ${SERVER}`,
    !isOpen && `--${access} ${access.toUpperCase()}`,
    isHigh && `--max-epsilon ${epsilon}`,
    epsilon > MAX_TOTAL_EPSILON && `--max-total-epsilon ${epsilon}`,
  ]
    .filter(Boolean)
    .join(" ");
  const python = `${isOpen ? "" : `, ${access}="${access.toUpperCase()}"`}${isHigh ? `, max_epsilon=${epsilon}` : ""}`;
  const script = [
    !isOpen && `${access}: "${access.toUpperCase()}"`,
    isHigh && `maxEpsilon: ${epsilon}`,
  ].filter(Boolean);
  return h(
    "div",
    {},
    h(
      "p",
      { class: "lead" },
      "This round has no reports yet. Share the survey, or send the first report.",
    ),
    h(
      "p",
      {},
      `${ACCESS[access] ?? ""} The survey and the clients change each answer at random on the user's device before they send it (ε = ${number(round.epsilon)}). This page shows the results as reports come. `,
      help("report"),
    ),
    h(
      "div",
      { class: "ways" },
      surveyCard(
        `round=${encodeURIComponent(name)}`,
        round.practice ? 0 : epsilon,
        expected(round, signal),
      ),
      h(
        "section",
        { class: "card" },
        h("h2", {}, "Try it out"),
        h("p", { class: "quiet" }, "These reports stay in the round."),
        code(
          "Simulate 5,000 users",
          access === "ticket"
            ? `ldprecover admin ticket ${name} --count 5000 --url ${SERVER} > tickets.txt
ldprecover sim users ${name} --tickets tickets.txt --url ${SERVER}`
            : `ldprecover sim users ${name} --users 5000 --url ${SERVER}${access === "key" ? " --key KEY" : ""}`,
        ),
        code(
          "Send one report",
          `ldprecover send value ${
            value.startsWith("-")
              ? `${options} -- ${quoted(value)} ${name}`
              : `${quoted(value)} ${name} ${options}`
          }`,
        ),
        example &&
          code(
            "curl, an example of a raw report",
            `curl ${SERVER}/rounds/${name}/reports -H 'Content-Type: application/json' ${access === "key" ? "-H 'Authorization: Bearer KEY' " : ""}\\
  -d '${json(example)}'`,
          ),
      ),
      h(
        "section",
        { class: "card" },
        h("h2", {}, "From a program"),
        code(
          "Python",
          `from ldprecover_client import Reporter

Reporter(${json(SERVER)}, ${json(name)}${python}).report(${json(value)})`,
        ),
        code(
          "JavaScript",
          `import { Reporter } from "${SERVER}/page/client/ldprecover.js";

await new Reporter(${json(SERVER)}, ${json(name)}${script.length ? `, { ${script.join(", ")} }` : ""}).report(${json(value)});`,
        ),
      ),
    ),
  );
}

/** A field for the number of people, and how exact their shares will be. */
function expected({ protocol, epsilon, items }, signal) {
  const sentence = h("p", { role: "status" });
  const people = h("input", { type: "number", min: 1, max: 1e12, step: 1, value: 30 });
  let asked = new AbortController();
  const ask = async () => {
    asked.abort();
    asked = new AbortController();
    fill(sentence);
    if (!people.value || !people.checkValidity()) return;
    const query = { domain_size: items.length, epsilon, protocol, users: people.value };
    const either = AbortSignal.any([asked.signal, signal]);
    try {
      const { accuracy } = await get("plan", { query, signal: either });
      fill(sentence, accuracy?.sentence);
    } catch (error) {
      if (!isAbort(error)) fill(sentence, sentenceOf(error));
    }
  };
  people.addEventListener("input", ask);
  ask();
  return h("div", {}, field("How many people will answer?", people), sentence);
}

/** A report in its form on the wire, of the first item; null for a long one. */
function rawReport({ protocol, items, subset_size: ones }) {
  const bits = (k) => "1".repeat(k) + "0".repeat(items.length - k);
  if (["grr", "hr", "llh"].includes(protocol)) return { reports: [0] };
  if (protocol === "olh") return { seeds: [1], buckets: [0] };
  if (items.length > 200) return null;
  return { reports: [bits(protocol === "ss" ? ones : 1)] };
}

/** A word for a shell. */
function quoted(text) {
  return /^[\w.-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
