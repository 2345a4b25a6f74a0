// The addresses of a round's results, as JSON and CSV.

import { roundPath } from "../api.js";
import { fill, h } from "../dom.js";
import { AUTO } from "./recoveries.js";

/** Make the panel; `show(questions)` takes the requests of the recoveries that the chart shows. */
export function addressesPanel(round) {
  const list = h("ul", { class: "plain" });
  let shown = null;

  const links = (name, path, query) =>
    h(
      "li",
      {},
      `${name}: `,
      ["json", "csv"].map((format, k) => {
        const url = new URL(roundPath(round.name, path), document.baseURI);
        const asked = format === "json" ? query : [...query, ["format", format]];
        url.search = new URLSearchParams(asked);
        return [k > 0 && ", ", h("a", { href: url.href }, url.href)];
      }),
    );

  /** The query of a recovery's address, from the body of its request. */
  const queryOf = ({ targets = [], history = [], ...rest }) => [
    ...Object.entries(rest),
    ...targets.map((index) => ["target", round.items[index]]),
    ...history.map((name) => ["history", name]),
  ];

  return {
    root: h(
      "section",
      { class: "card addresses" },
      h("h2", {}, "Addresses of these results"),
      list,
      h(
        "p",
        { class: "quiet" },
        "JSON, and CSV for programs; for a spreadsheet take the chart's button CSV, or format=csv-bom.",
        round.read_access === "key" &&
          " They need a key: programs send the header Authorization: Bearer KEY with an analyst or admin key; a browser that follows the link sends none.",
      ),
    ),
    show(questions) {
      const next = JSON.stringify(questions);
      if (next === shown) return;
      shown = next;
      fill(
        list,
        questions.map((body) =>
          links(
            body.method === AUTO.name ? "Best estimate" : body.method,
            "recover",
            queryOf(body),
          ),
        ),
        links("As collected", "frequencies", []),
      );
    },
  };
}
