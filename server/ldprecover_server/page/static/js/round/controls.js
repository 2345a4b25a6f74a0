// Controls of "Methods and tests": which methods are compared, and what they assume.

import { action, field, fill, h } from "../dom.js";
import { isolated } from "../format.js";
import { help } from "../help.js";
import { isFast } from "./recoveries.js";
import { MAX_COMPARED, reasonAgainst } from "./settings.js";

const MODELS = ["paper", "exact", "padded", "searched", "solved"];
const RECOMMENDED = ["unmix", "norm-sub"];
const GROUPS = [
  [
    "Recommended",
    "The best estimate in the chart is un-mixing where it fits the round, else the plain projection. It is worked out unasked for up to 2,000,000 reports, and for any number of GRR, HR and LLH.",
    (method) => RECOMMENDED.includes(method.name),
  ],
  [
    "Needs targets",
    "These need the items that you think were attacked.",
    (method) => method.needs.includes("targets"),
  ],
  ["Research", "Methods of papers and simpler rules, to compare with.", () => true],
];

/** Make the controls; they call `changed` with "methods", "assumptions" or "targets" after a change of `settings`. */
export function controls(settings, labels, changed) {
  const compared = h("div", { class: "cards" });
  const eta = (type, name, max, label) =>
    h("input", { type, name, min: 0, max, step: 0.01, "aria-label": label });
  const slider = eta("range", "eta", 1, "Assumed malicious users per honest one, eta");
  const exact = eta("number", "eta-number", 10, "Eta as a number");
  const auto = h("input", { type: "checkbox", name: "eta-auto" });
  const model = h(
    "select",
    { name: "model" },
    MODELS.map((name) => h("option", { value: name }, name)),
  );
  const etaField = h(
    "div",
    { role: "group", "aria-label": "Eta" },
    h("span", { class: "quiet" }, "η, malicious users per honest one ", help("eta")),
    h("div", { class: "row" }, slider, exact, h("label", {}, auto, " estimate it")),
  );
  const modelField = field("Malicious model", model);
  const targets = h("p", {});
  const clean = h("ul", { class: "legend" });
  const cleaning = h(
    "details",
    { hidden: true, open: settings.clean.size > 0 },
    h("summary", {}, "Earlier rounds that you know to be clean"),
    clean,
    h(
      "p",
      { class: "quiet" },
      "Methods that use a history trust them: one that was attacked too carries its attack on.",
    ),
  );
  let methods = [];

  const setEta = (value) => {
    if (!Number.isFinite(value)) return;
    settings.eta = Math.min(10, Math.max(0, value));
    showEta();
    changed("methods");
  };
  slider.addEventListener("input", () => setEta(Number(slider.value)));
  exact.addEventListener("change", () => setEta(Number(exact.value)));
  auto.addEventListener("change", () => {
    settings.eta = auto.checked ? "auto" : Number(slider.value);
    showEta();
    changed("methods");
  });
  model.addEventListener("change", () => {
    settings.model = model.value;
    changed("methods");
  });

  const isUsed = (name) =>
    methods.some((each) => settings.compared.includes(each.name) && each.uses.includes(name));

  function showEta() {
    const value = settings.eta === "auto" ? null : settings.eta;
    auto.checked = value === null;
    slider.disabled = exact.disabled = value === null;
    if (value !== null) {
      slider.value = value;
      if (Number(exact.value) !== value || exact.value === "") exact.value = value;
      slider.setAttribute("aria-valuetext", `eta ${value}`);
    }
  }

  function choice(method) {
    const reason = reasonAgainst(method, settings);
    const box = h("input", {
      type: "checkbox",
      name: `with-${method.name}`,
      checked: settings.compared.includes(method.name),
      disabled: reason !== null,
    });
    box.addEventListener("change", () => {
      settings.compared = settings.compared.filter((name) => name !== method.name);
      if (box.checked) settings.compared.push(method.name);
      if (settings.compared.length > MAX_COMPARED) settings.compared.shift();
      for (const other of compared.querySelectorAll("input"))
        other.checked = settings.compared.includes(other.name.slice(5));
      showAssumptions();
      changed("methods");
    });
    const note = [method.summary, !isFast(method) && "takes longer", reason].filter(Boolean);
    return h(
      "li",
      {},
      h("label", {}, box, " ", h("strong", {}, method.name)),
      h("span", { class: "quiet" }, ` ${note.join("; ")}`),
    );
  }

  function showAssumptions() {
    etaField.hidden = !isUsed("eta");
    modelField.hidden = !isUsed("malicious_model") || settings.targets.size === 0;
    model.value = settings.model;
    showEta();
  }

  function show() {
    const focused = document.activeElement?.name;
    const rest = new Set(methods.filter((each) => each.name !== "auto"));
    fill(
      compared,
      GROUPS.map(([title, sentence, belongs]) => {
        const some = [...rest].filter(belongs);
        for (const each of some) rest.delete(each);
        return h(
          "div",
          {},
          h("h3", {}, title),
          h("p", { class: "quiet" }, sentence),
          h("ul", { class: "plain" }, some.map(choice)),
        );
      }),
    );
    if (focused?.startsWith("with-")) compared.querySelector(`[name="${focused}"]`)?.focus();
    showAssumptions();
    showTargets();
  }

  function showTargets() {
    const names = [...settings.targets].slice(0, 12).map((index) => isolated(labels[index]));
    const clear = action(
      "Clear the targets",
      () => {
        settings.targets.clear();
        changed("targets");
      },
      { class: "small" },
    );
    fill(
      targets,
      settings.targets.size === 0
        ? "No targets: click an item in the chart, or tick it in its table, if you think that it was attacked. "
        : [
            "Targets: ",
            h("strong", {}, names.join(", ")),
            settings.targets.size > 12 ? " and others. " : ". ",
            clear,
            " ",
          ],
      help("target", "targets"),
    );
  }

  return {
    root: h(
      "section",
      { class: "card" },
      h("h2", {}, "Compare methods"),
      targets,
      h("div", { class: "controls" }, etaField, modelField),
      compared,
      cleaning,
    ),
    setMethods(list) {
      methods = list;
      show();
    },
    show,
    /** Offer closed rounds over the same items as clean rounds. */
    setEarlier(rounds) {
      cleaning.hidden = rounds.length === 0;
      fill(
        clean,
        rounds.map((round) => {
          const checked = settings.clean.has(round.name);
          const box = h("input", { type: "checkbox", name: `clean-${round.name}`, checked });
          box.addEventListener("change", () => {
            if (box.checked) settings.clean.add(round.name);
            else settings.clean.delete(round.name);
            show();
            changed("assumptions");
          });
          return h("li", {}, h("label", {}, box, ` ${round.name}`));
        }),
      );
    },
  };
}
