// The planner: items, users, epsilon and error of a round, each from the others, and attackers' gain.

import { get, isAbort, sentenceOf } from "../api.js";
import { field, fill, h, notice } from "../dom.js";
import { setQuery } from "../router.js";
import { results } from "./plan/results.js";

const PAUSE = 250; // milliseconds between the last key and the request

const PERCENT = 100; // people enter per cent, the interface takes frequencies

/** The quantities that can be computed, and the field of each. */
const FOUR = {
  domain_size: {
    label: "Items",
    least: 2,
    most: 100000,
    step: 1,
    usual: 102,
    help: "how many users choose from",
  },
  users: { label: "Users", least: 1, most: 1e12, step: 1, usual: 100000, help: "as many reports" },
  epsilon: {
    label: "Epsilon",
    least: 0.01,
    most: 10,
    step: "any",
    usual: 1,
    help: "the smaller, the more private: 0.01 to 10",
  },
  error: {
    label: "Standard error, points",
    least: 0.0001,
    most: 100,
    step: "any",
    usual: 0.5,
    per: PERCENT,
    help: "percentage points",
  },
};
const WORKED_OUT = {
  error: "the error",
  users: "the number of users",
  epsilon: "epsilon",
  domain_size: "the number of items",
};
const MORE = {
  sum_of: {
    label: "Sum of so many items",
    least: 1,
    most: 99999,
    step: 1,
    usual: 1,
    help: "1: each item by itself",
  },
  frequency: {
    label: "What they have together, %",
    least: 0,
    most: 100,
    step: "any",
    usual: "",
    per: PERCENT,
    help: "empty: 1/d each",
  },
  targets: {
    label: "Targets of an attacker",
    least: 1,
    most: 99999,
    step: 1,
    usual: "",
    help: "empty: ten, or half of few items",
  },
  beta: {
    label: "Fake users, %",
    least: 0,
    most: 100,
    step: "any",
    usual: 5,
    per: PERCENT,
    help: "of all users",
  },
  gain: {
    label: "Bearable gain, points",
    least: 0.001,
    most: 1e6,
    step: "any",
    usual: 1,
    per: PERCENT,
    help: "of all targets together",
  },
  lead: {
    label: "Lead to protect, points",
    least: 0.001,
    most: 100,
    step: "any",
    usual: "",
    per: PERCENT,
    help: "of one item over another; empty: any",
  },
};
const ALL = { ...FOUR, ...MORE };

export async function show({ main, query, signal }) {
  const inputs = {};
  for (const [name, of] of Object.entries(ALL)) {
    const value = query.get(name) ?? of.usual;
    inputs[name] = h("input", {
      type: "number",
      inputmode: "decimal",
      min: of.least,
      max: of.most,
      step: of.step,
      value,
      name,
    });
  }
  const fields = Object.fromEntries(
    Object.entries(ALL).map(([name, of]) => [name, field(of.label, inputs[name], of.help)]),
  );
  const solve = select("solve", WORKED_OUT, query.get("solve"));
  const attacker = select(
    "attacker",
    { beta: "fake users", gain: "bearable gain" },
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
      names.map((name) => [name, Number(inputs[name].value) / (ALL[name].per ?? 1)]),
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
