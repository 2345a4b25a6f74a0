// Controls of a round's view: methods, assumptions, items and their order.

import { field, fill, h } from "../dom.js";
import { isFast } from "./recoveries.js";
import { MAX_COMPARED, SORTS, TOPS, reasonAgainst } from "./settings.js";

const MODELS = ["paper", "exact", "padded", "searched", "solved"];

/** Make the controls; they call `changed` with "methods", "assumptions" or "shown" after a change of `settings`. */
export function controls(settings, labels, changed) {
  const method = h("select", { name: "method" });
  const compared = h("div", {});
  const comparing = h(
    "details",
    { open: settings.compared.length > 0 },
    h("summary", {}, "Compare with other methods"),
    compared,
  );
  const summary = h("p", { class: "quiet" });
  const slider = h("input", {
    type: "range",
    name: "eta",
    min: 0,
    max: 1,
    step: 0.01,
    "aria-label": "Assumed malicious users per genuine one, eta",
  });
  const exact = h("input", {
    type: "number",
    name: "eta-number",
    min: 0,
    max: 10,
    step: 0.01,
    "aria-label": "Eta as a number",
  });
  const auto = h("input", { type: "checkbox", name: "eta-auto" });
  const model = h(
    "select",
    { name: "model" },
    MODELS.map((name) => h("option", { value: name }, name)),
  );
  const etaField = h(
    "div",
    { role: "group", "aria-label": "Eta" },
    h("span", { class: "quiet" }, "η, malicious users per genuine one"),
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
  const sort = h(
    "select",
    { name: "sort", value: settings.sort },
    Object.entries(SORTS).map(([name, text]) => h("option", { value: name }, text)),
  );
  sort.value = settings.sort;
  const top = h(
    "select",
    { name: "top" },
    TOPS.map((name) => h("option", { value: name }, name === "all" ? "all" : `the first ${name}`)),
  );
  top.value = settings.top;
  const find = h("input", {
    type: "search",
    name: "find",
    value: settings.find,
    autocomplete: "off",
    placeholder: "part of a label",
  });
  let methods = [];

  method.addEventListener("change", () => {
    settings.method = method.value;
    show();
    changed("methods");
  });
  const setEta = (value) => {
    if (!Number.isFinite(value)) return;
    settings.eta = Math.min(10, Math.max(0, value));
    showEta();
    changed("assumptions");
  };
  slider.addEventListener("input", () => setEta(Number(slider.value)));
  exact.addEventListener("change", () => setEta(Number(exact.value)));
  auto.addEventListener("change", () => {
    settings.eta = auto.checked ? "auto" : Number(slider.value);
    showEta();
    changed("assumptions");
  });
  model.addEventListener("change", () => {
    settings.model = model.value;
    changed("assumptions");
  });
  for (const [control, name] of [
    [sort, "sort"],
    [top, "top"],
  ]) {
    control.addEventListener("change", () => {
      settings[name] = control.value;
      changed("shown");
    });
  }
  find.addEventListener("input", () => {
    settings.find = find.value;
    changed("shown");
  });

  const uses = (name) => methods.find((each) => each.name === settings.method)?.uses.includes(name);

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

  function show() {
    fill(
      method,
      methods.map((each) =>
        h(
          "option",
          {
            value: each.name,
            disabled: each.name !== settings.method && reasonAgainst(each, settings) !== null,
          },
          `${each.name}${isFast(each) ? "" : " (takes longer)"}`,
        ),
      ),
    );
    method.value = settings.method;
    const chosen = methods.find((each) => each.name === settings.method);
    const against = chosen && reasonAgainst(chosen, settings);
    fill(
      summary,
      chosen
        ? `${chosen.summary}. ${against === null ? "" : `Not for this round as it is: ${against}.`}`
        : "There is no such method.",
    );
    etaField.hidden = !uses("eta");
    modelField.hidden = !uses("malicious_model") || settings.targets.size === 0;
    model.value = settings.model;
    showEta();
    fill(
      compared,
      h(
        "ul",
        { class: "legend" },
        methods
          .filter((each) => each.name !== settings.method)
          .map((each) => {
            const reason = reasonAgainst(each, settings);
            const box = h("input", {
              type: "checkbox",
              name: `with-${each.name}`,
              checked: settings.compared.includes(each.name),
              disabled: reason !== null,
            });
            box.addEventListener("change", () => {
              settings.compared = settings.compared.filter((name) => name !== each.name);
              if (box.checked) settings.compared.push(each.name);
              if (settings.compared.length > MAX_COMPARED) settings.compared.shift();
              for (const other of compared.querySelectorAll("input"))
                other.checked = settings.compared.includes(other.name.slice(5));
              changed("methods");
            });
            return h(
              "li",
              { title: each.summary },
              h("label", {}, box, ` ${each.name}`),
              reason !== null && h("span", { class: "quiet" }, ` (${reason})`),
            );
          }),
      ),
    );
    showTargets();
  }

  function showTargets() {
    const names = [...settings.targets].slice(0, 12).map((index) => labels[index]);
    const clear = h(
      "button",
      {
        type: "button",
        class: "small",
        onclick: () => {
          settings.targets.clear();
          changed("targets");
        },
      },
      "Clear the targets",
    );
    fill(
      targets,
      settings.targets.size === 0
        ? "No targets: click an item, or tick it in the table, if you think that it was attacked."
        : [
            "Targets: ",
            h("strong", {}, names.join(", ")),
            settings.targets.size > 12 ? " and others. " : ". ",
            clear,
          ],
    );
  }

  return {
    root: h(
      "section",
      { class: "card" },
      h("h2", {}, "Recovery"),
      h("div", { class: "controls" }, field("Method", method), etaField, modelField),
      summary,
      targets,
      comparing,
      cleaning,
    ),
    shown: h(
      "div",
      { class: "controls" },
      field("Sort by", sort),
      field("Show", top),
      field("Find", find),
    ),
    setMethods(found) {
      methods = found;
      show();
    },
    show,
    /** Offer the earlier closed rounds of the series as clean rounds. */
    setEarlier(rounds) {
      cleaning.hidden = rounds.length === 0;
      fill(
        clean,
        rounds.map((round) => {
          const box = h("input", {
            type: "checkbox",
            name: `clean-${round.name}`,
            checked: settings.clean.has(round.name),
          });
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
