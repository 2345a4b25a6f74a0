// A document: a round in one file, with its data as JSON in the element `data`.

import { fill, h } from "./dom.js";
import { count, number, time } from "./format.js";
import { alarmed, certain, recovered, summary, suspected } from "./report/findings.js";
import { frequencies } from "./report/frequencies.js";

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
    ["Series", round.series ?? "none"],
    ["Who may report", round.access],
    ["Reports are kept", round.retention],
    ["Opened", time(round.opened_at)],
    ["Closed", time(round.closed_at)],
    ["This report was made", time(made)],
  ];
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

function show(main) {
  const { round, frequencies: collected } = data;
  const reports = `${count(collected.n)} ${collected.n === 1 ? "report" : "reports"}`;
  fill(
    main,
    h("h1", {}, round.name),
    h(
      "p",
      {},
      `${reports} over ${count(round.domain_size)} items by ${round.protocol} at epsilon ${number(round.epsilon)}; the round is ${round.state}.`,
    ),
    h(
      "p",
      { class: "quiet" },
      "Everything here is made from perturbed reports. This file needs no server, and asks nobody for anything.",
    ),
  );
  if (collected.n === 0) main.append(h("p", {}, "There are no estimates: they need reports."));
  else {
    // Charts get their size once they are in the document.
    const place = h("div", {});
    main.append(summary(data), place);
    frequencies(place, data, signal);
    const proven = certain(data);
    if (proven) main.append(proven);
    main.append(recovered(data), alarmed(data, signal), suspected(data, signal));
  }
  main.append(parameters(data));
}

show(document.getElementById("main"));
