// The form: data, users, attack and recovery methods, with the choices that the drill offers.

import { field, fill, h } from "/page/js/dom.js";
import { count } from "/page/js/format.js";
import { setQuery } from "/page/js/router.js";

const TITLES = { round: "One round", map: "All attacks" };
const BUTTONS = { round: "Run the drill", map: "Draw the map" };

/** Make the form; it calls `start` with the request. Returns `{root, setBusy(busy)}`. */
export function form(
  { defaults, limits, datasets, protocols, attacks, models, methods },
  kind,
  start,
) {
  const source = h("p", { class: "quiet" });
  const sentence = h("p", { class: "quiet", id: "drill-attack" });
  const usersOf = {
    round: { value: defaults.users, max: limits.users },
    map: { value: defaults.map_users, max: limits.map_users },
  };
  const main = {
    dataset: choice(
      "Data set",
      datasets.map((each) => [each.name, `${each.name} (${count(each.items)} items)`]),
      defaults.dataset,
    ),
    protocol: choice(
      "Protocol",
      Object.entries(protocols).map(([name, title]) => [name, `${name}: ${title}`]),
      defaults.protocol,
    ),
    epsilon: number("Privacy budget ε", defaults.epsilon, { min: 0.01, max: 10, step: "any" }),
    users: number("Genuine users", usersOf[kind].value, { min: 1, step: 1 }),
    beta: number(
      "Malicious users, % of all",
      Number((100 * defaults.beta).toPrecision(12)),
      { min: 0, max: 90, step: "any" },
      (value) => value / 100,
    ),
    targets: number("Targets", defaults.targets, { min: 1, max: 1000, step: 1 }),
    attack: choice(
      "Attack",
      Object.entries(attacks).map(([name, { title }]) => [name, `${name}: ${title}`]),
      defaults.attack,
    ),
  };
  const further = {
    model: choice("Reports of the attack", Object.entries(models), defaults.model),
    eta: number("Malicious per genuine user, as LDPRecover assumes", defaults.eta, {
      min: 0,
      max: 10,
      step: "any",
    }),
    seed: number("Seed", defaults.seed, { min: 0, max: 2 ** 32 - 1, step: 1 }),
    trials: number("Trials of each attack", defaults.trials, {
      min: 1,
      max: limits.trials,
      step: 1,
    }),
  };
  const checks = {
    told: check("Tell methods the targets as well, where they use them", defaults.told),
    reports: check("Make every report, for methods that read reports (slower)", defaults.reports),
  };
  const controls = { ...main, ...further, ...checks };
  const only = { round: ["attack", "model", "told"], map: ["trials", "reports"] };
  const chosen = Object.entries(methods).map(([name, summary]) => ({
    name,
    ...check(`${name}: ${summary}`, defaults.methods.includes(name)),
  }));
  const methodsOf = h(
    "fieldset",
    { class: "drill-methods" },
    h("legend", {}, "Recovery methods"),
    chosen.map((each) => each.root),
  );
  const attackRow = h(
    "div",
    { class: "drill-attack" },
    main.attack.root,
    sentence,
    main.targets.root,
  );
  main.attack.control.setAttribute("aria-describedby", "drill-attack");
  const go = h("button", { type: "submit", class: "main" });
  const kinds = Object.entries(TITLES).map(([name, title]) =>
    h("button", { type: "button", value: name, onclick: () => choose(name) }, title),
  );

  function follow() {
    const isRound = kind === "round";
    const { sentence: words, targeted, modelled } = attacks[main.attack.value()];
    const idle = isRound ? { model: !modelled, targets: !targeted, told: !targeted } : {};
    const others = only[isRound ? "map" : "round"];
    for (const [name, { root, control }] of Object.entries(controls)) {
      // A hidden field must not block the form.
      root.hidden = control.disabled = others.includes(name) || (idle[name] ?? false);
    }
    methodsOf.hidden = !isRound;
    main.users.control.max = usersOf[kind].max;
    fill(
      sentence,
      isRound
        ? words
        : "Each attack that the protocol has reports for is simulated, without a server.",
    );
    fill(source, `Data: ${datasets.find((each) => each.name === main.dataset.value()).source}`);
    fill(go, BUTTONS[kind]);
    for (const button of kinds) button.setAttribute("aria-pressed", String(button.value === kind));
  }
  function choose(name) {
    kind = name;
    main.users.control.value = usersOf[name].value;
    setQuery({ what: name === "round" ? null : name });
    follow();
  }
  function submit(event) {
    event.preventDefault();
    const values = Object.entries(controls)
      .filter(([, each]) => !each.control.disabled)
      .map(([name, each]) => [name, each.value()]);
    const request = { kind, ...Object.fromEntries(values) };
    if (kind === "round")
      request.methods = chosen.filter((each) => each.value()).map((each) => each.name);
    start(request);
  }

  const root = h(
    "form",
    { class: "drill-form", onsubmit: submit, onchange: follow, "aria-label": "The drill" },
    h("div", { class: "row", role: "group", "aria-label": "What is played" }, kinds),
    h(
      "div",
      { class: "controls" },
      [main.dataset, main.protocol, main.epsilon, main.users, main.beta].map((each) => each.root),
      attackRow,
    ),
    h(
      "details",
      {},
      h("summary", {}, "Methods and further settings"),
      h(
        "div",
        { class: "controls" },
        Object.values(further).map((each) => each.root),
      ),
      methodsOf,
      Object.values(checks).map((each) => each.root),
    ),
    h(
      "details",
      {},
      h("summary", {}, "What each attack does"),
      h(
        "dl",
        { class: "drill-words" },
        Object.entries(attacks).map(([name, each]) => [
          h("dt", {}, h("strong", {}, name), `: ${each.title}`),
          h("dd", {}, each.sentence),
        ]),
      ),
    ),
    source,
    h("p", {}, go),
  );
  follow();
  return {
    root,
    setBusy: (busy) => {
      go.disabled = busy;
    },
  };
}

function choice(title, pairs, value) {
  const options = pairs.map(([name, words]) => h("option", { value: name }, words));
  const control = h("select", { value }, options);
  return { root: field(title, control), control, value: () => control.value };
}

function number(title, value, limits, read = (shown) => shown) {
  const control = h("input", { type: "number", required: true, value, ...limits });
  return { root: field(title, control), control, value: () => read(Number(control.value)) };
}

function check(title, checked) {
  const control = h("input", { type: "checkbox", checked });
  const root = h("label", { class: "drill-check" }, control, h("span", {}, title));
  return { root, control, value: () => control.checked };
}
