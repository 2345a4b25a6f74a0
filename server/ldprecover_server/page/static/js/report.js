// A document: a round in one file, with its data as JSON in the element `data`.

import { fill, h } from "./dom.js";
import { count, day, number, plural, time } from "./format.js";
import { alarmed, certain, recovered, suspected } from "./report/findings.js";
import { frequencies } from "./report/frequencies.js";
import { errorBars } from "./round/items.js";
import { sentences, tiles, verdictOf } from "./round/verdict.js";

const data = JSON.parse(document.getElementById("data").textContent);
const { signal } = new AbortController(); // never aborted: a file has one view

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
  dispatchEvent(new Event("themechange")),
);

function parameters({ round, made }) {
  const own = Object.entries(round.own).map(([name, value]) => [
    name.replaceAll("_", " "),
    count(value),
  ]);
  const rows = [
    ["Round", round.id],
    ["Protocol", round.protocol],
    ["Epsilon", number(round.epsilon, 6)],
    ["Items", count(round.domain_size)],
    ...own,
    ["p", number(round.p, 9)],
    ["q", number(round.q, 9)],
    ["Digest of the parameters", round.digest],
    ["Series", round.series],
    ["Who may report", round.access],
    ["Reports are kept", round.retention],
    ["Opened", time(round.opened_at)],
    ["Closed", round.closed_at && time(round.closed_at)],
    ["This report was made", time(made)],
  ].filter(([, value]) => value);
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "Parameters"),
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table: Parameters" },
      h(
        "table",
        {},
        h(
          "tbody",
          {},
          rows.map(([name, value]) =>
            h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "label" }, value)),
          ),
        ),
      ),
    ),
  );
}

/** The recovery that the verdict is from: one that concludes something of the attack, else the first. */
function bestOf({ recoveries }) {
  return recoveries.find((each) => each.conclusions) ?? recoveries[0] ?? null;
}

function verdict(best) {
  const { round, frequencies: estimates, alarms, certificate } = data;
  const isAlarmed = alarms?.alarms.some((each) => each.raised) ?? false;
  const least = certificate?.least_malicious_share ?? null;
  const facts = {
    n: estimates.n,
    state: round.state,
    verdict: verdictOf(best ?? {}, least, isAlarmed),
    ...errorBars(estimates, best),
    noise: (estimates.notes ?? []).some((note) => note.startsWith("The noise")),
    isOpen: round.state === "open",
    hasBand: certificate !== null,
  };
  const shown = tiles();
  shown.set(facts);
  const [first, second] = sentences(facts.verdict, estimates.items, facts);
  const root = h(
    "section",
    { "aria-label": "Verdict" },
    shown.root,
    h("p", { class: "lead" }, first),
    h("p", {}, second),
  );
  return { root, raised: facts.verdict.raised };
}

function show(main) {
  const { round, frequencies: collected } = data;
  fill(
    main,
    h("h1", {}, round.name),
    h(
      "p",
      { class: "quiet" },
      `A report of ${day(data.made)}: ${plural(collected.n, "report")} over ${count(round.domain_size)} items by ${round.protocol.toUpperCase()} at ε = ${number(round.epsilon)}; the round is ${round.state}.`,
    ),
  );
  if (collected.n === 0) main.append(h("p", {}, "There are no estimates: they need reports."));
  else {
    const best = bestOf(data);
    const { root, raised } = verdict(best);
    // Charts get their size once they are in the document.
    const place = h("div", {});
    main.append(root, place);
    frequencies(place, data, best, raised, signal);
    const sections = [certain(data), recovered(data), alarmed(data), suspected(data, signal)];
    main.append(...sections.filter(Boolean));
  }
  main.append(
    parameters(data),
    h(
      "p",
      { class: "quiet" },
      "Everything here is made from perturbed reports. This file needs no server, and asks nobody for anything.",
    ),
  );
}

show(document.getElementById("main"));
