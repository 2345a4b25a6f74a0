// A server without rounds: what to do first.

import { hasKey, post, roundPath } from "../api.js";
import { code } from "../code.js";
import { action, fill, h, notice } from "../dom.js";
import { askForKey, failure } from "../key.js";
import { go } from "../router.js";

const DISHES =
  "soup salad pasta pizza rice curry tacos sushi ramen falafel burger fries kebab dumplings paella pancakes stew pie noodles risotto omelette sandwich burrito gnocchi lasagne pho bibimbap couscous gyoza samosa".split(
    " ",
  );
const RAISED = [13, 15, 17];
const USERS = 5000;
const MALICIOUS = 500;

/** What a server without rounds offers. */
export function firstSteps() {
  const said = h("div", {});
  const button = action("Open a sample round", open, { class: "main" });

  async function open() {
    if (!hasKey() && !(await askForKey())) return;
    button.disabled = true;
    fill(said, notice("", "5,000 users are being simulated."));
    try {
      const name = await sampleRound();
      go(["rounds", name]);
    } catch (error) {
      fill(said, failure(error));
    }
    button.disabled = false;
  }
  return h(
    "div",
    {},
    h(
      "p",
      { class: "lead" },
      "This server has no rounds yet. A round asks many people one question without being sure of any one answer.",
    ),
    h(
      "p",
      {},
      "The sample round has 5,000 simulated users who choose among 30 dishes, and 500 malicious reports that raise three of them. See whether this page finds out.",
    ),
    h(
      "div",
      { class: "row" },
      button,
      h("a", { class: "button", href: "#/open" }, "Open a round of your own"),
    ),
    said,
    h("h2", {}, "Or at a terminal"),
    h(
      "div",
      { class: "ways" },
      code("An attack and its repair, played through", "ldprecover demo"),
      code("Attacks and recoveries compared", "ldprecover demo --page"),
    ),
  );
}

/** Open, fill and close the sample round; returns its name. */
async function sampleRound() {
  const name = `sample-${new Date()
    .toISOString()
    .slice(0, 16)
    .replace(/[^0-9]/g, "")}`;
  const round = await post("rounds", { name, protocol: "oue", epsilon: 2, items: DISHES });
  const weights = DISHES.map((_, rank) => 1 / (rank + 1));
  const total = weights.reduce((sum, each) => sum + each);
  const reports = [];
  for (let user = 0; user < USERS; user++) {
    let left = Math.random() * total;
    const item = weights.findIndex((weight) => (left -= weight) < 0);
    reports.push(perturbed(Math.max(0, item), round));
  }
  const crafted = DISHES.map((_, index) => (RAISED.includes(index) ? "1" : "0")).join("");
  for (let k = 0; k < MALICIOUS; k++) reports.push(crafted);
  await post(roundPath(round.id, "reports"), { reports });
  await post(roundPath(round.id, "close"), undefined);
  return name;
}

/** An item as a report of OUE; simulated users need no cryptographic randomness. */
function perturbed(item, { p, q }) {
  return DISHES.map((_, index) => (Math.random() < (index === item ? p : q) ? "1" : "0")).join("");
}
