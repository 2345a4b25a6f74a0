// The form: attack, users and recovery methods, with the choices that the drill offers.

import { fill, h } from "/page/js/dom.js";
import { count } from "/page/js/format.js";
import { setQuery } from "/page/js/router.js";

const TITLES = { round: "One round", map: "All attacks" };

/** Make the form; it calls `start` with the request. Returns `{root, setBusy(busy)}`. */
export function form(choices, kind, start) {
  const { defaults, limits } = choices;
  const controls = {
    dataset: select(
      "Data set",
      choices.datasets.map((each) => [each.name, `${each.name} (${count(each.items)} items)`]),
      defaults.dataset,
    ),
    protocol: select(
      "Protocol",
      choices.protocols.map((each) => [each.name, `${each.name}: ${each.title}`]),
      defaults.protocol,
    ),
    epsilon: number("Privacy budget ε", defaults.epsilon, { min: 0.01, max: 10, step: "any" }),
    users: number("Genuine users", defaults.users, { min: 1, max: limits.users, step: 1 }),
    map_users: number("Genuine users", defaults.map_users, {
      min: 1,
      max: limits.map_users,
      step: 1,
    }),
    beta: number("Malicious share β", defaults.beta, { min: 0, max: 0.9, step: "any" }),
    attack: select(
      "Attack",
      choices.attacks.map((each) => [each.name, each.name]),
      defaults.attack,
    ),
    model: select(
      "Reports of the attack",
      choices.models.map((each) => [each, each]),
      defaults.model,
    ),
    targets: number("Targets", defaults.targets, { min: 1, max: 1000, step: 1 }),
    eta: number("Assumed m/n, η", defaults.eta, { min: 0, max: 10, step: "any" }),
    seed: number("Seed", defaults.seed, { min: 0, max: 2 ** 32 - 1, step: 1 }),
    trials: number("Trials of each attack", defaults.trials, {
      min: 1,
      max: limits.trials,
      step: 1,
    }),
    reports: check("Make every report, for methods that read reports (slower)", defaults.reports),
    told: check("Tell methods the targets as well, where they use them", defaults.told),
  };
  const methods = choices.methods.map((each) => ({
    name: each.name,
    ...check(`${each.name}: ${each.summary}`, defaults.methods.includes(each.name)),
  }));
  const parts = {
    round: [
      "dataset",
      "protocol",
      "epsilon",
      "users",
      "beta",
      "attack",
      "model",
      "targets",
      "eta",
      "seed",
      "told",
    ],
    map: [
      "dataset",
      "protocol",
      "epsilon",
      "map_users",
      "beta",
      "targets",
      "eta",
      "seed",
      "trials",
      "reports",
    ],
  };
  const summary = h("p", { class: "quiet" });
  const more = h(
    "details",
    {},
    h("summary", {}, "Methods that recover"),
    h(
      "div",
      { class: "drill-methods" },
      methods.map((each) => each.root),
    ),
    controls.told.root,
  );
  const go = h("button", { type: "submit", class: "main" });
  const kinds = Object.entries(TITLES).map(([name, title]) =>
    h("button", { type: "button", onclick: () => choose(name) }, title),
  );

  const attack = () => choices.attacks.find((each) => each.name === controls.attack.value());
  function follow() {
    const { summary: words, targeted, modelled } = attack();
    const isRound = kind === "round";
    const idle = { model: !modelled, targets: isRound && !targeted, told: !targeted };
    for (const [name, { root, control }] of Object.entries(controls)) {
      // A hidden field must not block the form.
      root.hidden = control.disabled = !parts[kind].includes(name) || (idle[name] ?? false);
    }
    more.hidden = !isRound;
    const { source } = choices.datasets.find((each) => each.name === controls.dataset.value());
    fill(
      summary,
      isRound
        ? `${attack().name}: ${words} `
        : "Each attack of the catalogue that the protocol has reports for, without a server. ",
      `Data: ${source}`,
    );
    fill(go, isRound ? "Run the drill" : "Draw the map");
    kinds.forEach((button, i) =>
      button.setAttribute("aria-pressed", String(Object.keys(TITLES)[i] === kind)),
    );
  }
  function choose(name) {
    kind = name;
    setQuery({ what: name === "round" ? null : name });
    follow();
  }
  function asked() {
    const values = { kind };
    for (const name of parts[kind])
      if (!controls[name].root.hidden)
        values[name === "map_users" ? "users" : name] = controls[name].value();
    if (kind === "round")
      values.methods = methods.filter((each) => each.value()).map((each) => each.name);
    return values;
  }
  const root = h(
    "form",
    {
      class: "card",
      "aria-label": "The drill's form",
      onsubmit: (event) => {
        event.preventDefault();
        start(asked());
      },
    },
    h("div", { class: "row", role: "group", "aria-label": "What is played" }, kinds),
    h(
      "div",
      { class: "controls" },
      Object.entries(controls)
        .filter(([name]) => name !== "told")
        .map(([, each]) => each.root),
    ),
    summary,
    more,
    h("p", {}, go),
  );
  root.addEventListener("change", follow);
  follow();
  return {
    root,
    setBusy: (busy) => {
      go.disabled = busy;
    },
  };
}

function select(title, pairs, value) {
  const control = h(
    "select",
    { value },
    pairs.map(([name, words]) => h("option", { value: name }, words)),
  );
  return { root: labelled(title, control), control, value: () => control.value };
}

function number(title, value, limits) {
  const control = h("input", { type: "number", required: true, value, ...limits });
  return { root: labelled(title, control), control, value: () => Number(control.value) };
}

function check(title, checked) {
  const control = h("input", { type: "checkbox", checked });
  return {
    root: h("label", { class: "drill-check" }, control, h("span", {}, title)),
    control,
    value: () => control.checked,
  };
}

function labelled(title, control) {
  return h("label", { class: "field" }, h("span", {}, title), control);
}
