// The planner: items, users, epsilon and error of a round, each from the others, and attackers' gain.

import { get, isAbort, sentenceOf } from "../api.js";
import { field, fill, h, notice } from "../dom.js";
import { setQuery } from "../router.js";
import { results } from "./plan/results.js";

const PAUSE = 250; // milliseconds between the last key and the request

const PERCENT = 100; // people enter per cent, the interface takes frequencies

/** A number of the form: its label, its bounds and step, its usual value, a hint, and its units in one of the interface's. */
const number = (label, least, most, step, usual, help, per = 1) => ({
  label,
  least,
  most,
  step,
  usual,
  help,
  per,
});

/** The quantities that can be computed, and the field of each. */
const FOUR = {
  domain_size: number("Items", 2, 100000, 1, 102, "how many users choose from"),
  users: number("Users", 1, 1e12, 1, 100000, "as many reports"),
  epsilon: number("Epsilon", 0.01, 10, "any", 1, "the smaller, the more private: 0.01 to 10"),
  error: number("Standard error, points", 0.0001, 100, "any", 0.5, "percentage points", PERCENT),
};
const WORKED_OUT = {
  error: "the error",
  users: "the number of users",
  epsilon: "epsilon",
  domain_size: "the number of items",
};
const MORE = {
  sum_of: number("Sum of so many items", 1, 99999, 1, 1, "1: each item by itself"),
  frequency: number("What they have together, %", 0, 100, "any", "", "empty: 1/d each", PERCENT),
  targets: number("Targets of an attacker", 1, 99999, 1, "", "empty: ten, or half of few items"),
  beta: number("Malicious users, %", 0, 100, "any", 5, "of all users", PERCENT),
  gain: number("Bearable gain, points", 0.001, 1e6, "any", 1, "of all targets together", PERCENT),
  lead: number(
    "Lead to protect, points",
    0.001,
    100,
    "any",
    "",
    "of one item over another; empty: any",
    PERCENT,
  ),
};
const ALL = { ...FOUR, ...MORE };

export async function show({ main, query, signal }) {
  const inputs = {};
  for (const [name, { least: min, most: max, step, usual }] of Object.entries(ALL)) {
    const value = query.get(name) ?? usual;
    const type = { type: "number", inputmode: "decimal" };
    inputs[name] = h("input", { ...type, min, max, step, value, name });
  }
  const fields = Object.fromEntries(
    Object.entries(ALL).map(([name, of]) => [name, field(of.label, inputs[name], of.help)]),
  );
  const solve = select("solve", WORKED_OUT, query.get("solve"));
  const attacker = select(
    "attacker",
    { beta: "malicious users", gain: "bearable gain" },
    query.get("attacker"),
  );
  const said = h("div", {});
  const out = h("div", {});
  const shown = results(out, signal);

  fill(
    main,
    h("h1", {}, "Plan a round"),
    h(
      "p",
      { class: "quiet" },
      "What a round would give, before a single report is there: worked out by the server from exact laws, for every protocol it has.",
    ),
    h(
      "section",
      { class: "card plan", "aria-label": "What is known" },
      h(
        "div",
        { class: "controls" },
        field("Work out", solve, "from the other three"),
        Object.keys(FOUR).map((name) => fields[name]),
      ),
      h(
        "details",
        { open: ["sum_of", "frequency"].some((name) => query.has(name)) },
        h("summary", {}, "The error of what"),
        h("div", { class: "controls" }, fields.sum_of, fields.frequency),
      ),
      h(
        "details",
        { open: ["targets", "beta", "gain", "lead", "attacker"].some((name) => query.has(name)) },
        h("summary", {}, "The attacker"),
        h(
          "div",
          { class: "controls" },
          fields.targets,
          field("Given", attacker, "the other follows"),
          fields.beta,
          fields.gain,
          fields.lead,
        ),
      ),
      said,
    ),
    out,
  );

  // A lead to protect is enough instead of an error.
  const needed = (name) =>
    name in FOUR && !(name === "error" && attacker.value === "beta" && inputs.lead.value !== "");

  const used = () => {
    const names = [
      ...Object.keys(FOUR).filter((name) => name !== solve.value),
      "sum_of",
      "frequency",
      "targets",
      attacker.value,
      ...(attacker.value === "beta" ? ["lead"] : []),
    ];
    return names.filter(
      (name) => inputs[name].value !== "" || needed(name) || name === attacker.value,
    );
  };

  function arrange() {
    for (const name of Object.keys(FOUR)) fields[name].hidden = name === solve.value;
    fields.beta.hidden = attacker.value !== "beta";
    fields.gain.hidden = attacker.value !== "gain";
    fields.lead.hidden = attacker.value !== "beta";
    const d =
      solve.value === "domain_size" ? ALL.domain_size.most : Number(inputs.domain_size.value) || 2;
    inputs.sum_of.max = String(Math.max(1, d - 1));
    inputs.targets.max = String(Math.max(1, d - 1));
  }

  // Remove the old plan: readers would take it for the plan of these values.
  function refuse(text) {
    out.hidden = true;
    fill(said, notice("bad", text));
  }

  let asked = null; // aborts the previous request
  async function ask() {
    arrange();
    const names = used();
    remember(names);
    const wrong = names.find((name) => inputs[name].value === "" || !inputs[name].checkValidity());
    asked?.abort();
    if (wrong) {
      refuse(`${ALL[wrong].label}: ${inputs[wrong].validationMessage || "a number is needed."}`);
      return;
    }
    asked = new AbortController();
    const wish = Object.fromEntries(
      names.map((name) => [name, Number(inputs[name].value) / ALL[name].per]),
    );
    try {
      const answer = await get("plan", {
        query: wish,
        signal: AbortSignal.any([asked.signal, signal]),
      });
      fill(said);
      out.hidden = false;
      shown(answer);
    } catch (error) {
      if (!isAbort(error)) refuse(sentenceOf(error));
    }
  }

  function remember(names) {
    const changes = {
      solve: solve.value === "error" ? null : solve.value,
      attacker: attacker.value === "beta" ? null : attacker.value,
    };
    for (const [name, of] of Object.entries(ALL)) {
      const value = inputs[name].value;
      changes[name] = names.includes(name) && value !== String(of.usual) ? value : null;
    }
    setQuery(changes);
  }

  let timer = 0;
  signal.addEventListener("abort", () => clearTimeout(timer));
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(ask, PAUSE);
  };
  for (const input of Object.values(inputs)) input.addEventListener("input", soon);
  for (const each of [solve, attacker]) each.addEventListener("change", ask);
  await ask();
}

function select(name, options, chosen) {
  const value = Object.hasOwn(options, chosen) ? chosen : Object.keys(options)[0];
  return h(
    "select",
    { name, value },
    Object.entries(options).map(([each, text]) => h("option", { value: each }, text)),
  );
}
