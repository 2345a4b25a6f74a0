// A form that opens a round. Its fields come from the API's description, so it knows no protocol.

import { labelKey } from "../../client/src/labels.js";
import { advice } from "../advice.js";
import { get, hasKey, post } from "../api.js";
import { field, fill, h, notice } from "../dom.js";
import { count, isolated } from "../format.js";
import { help } from "../help.js";
import { askForKey, failure } from "../key.js";
import { go } from "../router.js";

const AUTO = "auto";
const NAME = "[a-z0-9][a-z0-9._\\-]{0,63}";
const NAME_SAID = "a to z, 0 to 9, dot, _ and -, a letter or digit first";
const LEFT = ["protocol", "epsilon", "name", "items", "domain_size", "retention"];
const FOLDED = ["access", "read_access", "practice"];
const TEXTS = ["question", "title", "thanks", "language"];

export async function show({ main, query, signal }) {
  const document = await get("openapi.json", { signal });
  const fields = document.components.schemas.NewRound.properties;
  const own = Object.keys(fields).filter((name) => ![...LEFT, ...FOLDED, ...TEXTS].includes(name));
  const select = (name) =>
    h(
      "select",
      { name, value: query.get(name) ?? fields[name].default ?? fields[name].enum[0] },
      fields[name].enum.map((value) => h("option", { value }, value)),
    );
  const input = (name, attributes) =>
    h("input", { name, value: query.get(name) ?? "", autocomplete: "off", ...attributes });

  const { minimum: min, maximum: max } = fields.epsilon;
  const value = query.get("epsilon") ?? "1";
  const controls = {
    ...Object.fromEntries(TEXTS.map((name) => [name, input(name, { maxlength: 300 })])),
    name: input("name", { pattern: NAME, title: NAME_SAID, spellcheck: "false" }),
    protocol: h(
      "select",
      { name: "protocol", value: query.get("protocol") ?? AUTO },
      h("option", { value: AUTO }, "auto (recommended)"),
      fields.protocol.enum.map((value) => h("option", { value }, value.toUpperCase())),
    ),
    epsilon: input("epsilon", { type: "number", min, max, step: "any", required: true, value }),
    users: input("users", { type: "number", min: 1, max: 1e12, step: 1, value: "10000" }),
    items: h("textarea", { name: "items", rows: 6, spellcheck: "false" }),
    domain_size: input("domain_size", { type: "number", min: 2, max: 100000, step: 1 }),
    retention: select("retention"),
    access: select("access"),
    read_access: select("read_access"),
    ...Object.fromEntries(own.map((name) => [name, input(name, { type: "number", step: 1 })])),
  };
  const said = h("div", {});
  const itemsSaid = h("p", { class: "quiet", role: "status" });
  const helped = (name, title, sentence = fields[name].description) =>
    field(title, controls[name], sentence.replaceAll("`", ""));

  const submit = async (event) => {
    event.preventDefault();
    fill(said);
    if (!wanted().domain_size)
      return fill(
        said,
        notice("bad", "A round needs items: name them, or say how many there are."),
      );
    if (!hasKey() && !(await askForKey())) return;
    try {
      const body = asked(controls, own);
      if (body.protocol === AUTO) body.protocol = await advised.best();
      const round = await post("rounds", body);
      go(["rounds", round.name]);
    } catch (error) {
      fill(said, failure(error));
    }
    return undefined;
  };
  const more = h(
    "details",
    { open: controls.retention.value !== fields.retention.default },
    h("summary", {}, "Who may report and read, retention, title, and more"),
    h(
      "p",
      {},
      "Terms: ",
      ["ticket", "retention"].map((term) => [term, " ", help(term), " "]),
    ),
    h(
      "div",
      { class: "cards" },
      helped("access", "Who may report"),
      helped("read_access", "Who may read"),
      helped("retention", "Retention of reports"),
      helped("title", "Title"),
      helped("thanks", "Thanks"),
      helped("language", "Language"),
      own.map((name) => helped(name, name.replaceAll("_", " "))),
    ),
  );
  const form = h(
    "form",
    { class: "card", onsubmit: submit },
    h(
      "div",
      { class: "ways" },
      h(
        "div",
        {},
        field("Question", controls.question, "Optional: what the survey asks."),
        field(
          "Items, one a line",
          controls.items,
          "What users choose from: at least two, all different.",
        ),
        itemsSaid,
        field("Or how many items", controls.domain_size, "They are then called 0, 1, 2, …"),
      ),
      h(
        "div",
        { class: "stack" },
        helped("name", "Name", `Optional: ${NAME_SAID}.`),
        field(
          "Epsilon, ε",
          controls.epsilon,
          "Privacy: 0.01 to 10. 1 is usual; smaller is more private and needs more reports.",
        ),
        field("Users that you expect", controls.users, "For the advice only."),
        helped("protocol", "Protocol", "auto takes the one with the smallest error."),
      ),
    ),
    more,
    said,
    h(
      "p",
      {},
      h("button", { type: "submit", class: "main" }, "Open the round"),
      h("span", { class: "quiet" }, " Nothing of this can be changed later."),
    ),
  );
  controls.items.addEventListener("input", () => {
    const fault = faultOf(labels(controls.items.value));
    controls.items.setCustomValidity(fault.isWrong ? fault.text : "");
    itemsSaid.textContent = fault.text;
    controls.domain_size.disabled = controls.items.value.trim() !== "";
  });
  for (const control of [controls.items, controls.domain_size])
    control.addEventListener("input", () => fill(said));
  const wanted = () => ({
    domain_size: labels(controls.items.value).length || Number(controls.domain_size.value),
    epsilon: Number(controls.epsilon.value),
    users: Number(controls.users.value),
  });
  // The proposal belongs to its protocol; a retention that the user has entered stays.
  let proposed = controls.retention.value;
  const propose = (retention) => {
    if (controls.retention.value === proposed) controls.retention.value = proposed = retention;
  };
  controls.protocol.addEventListener("change", () => propose(fields.retention.default));
  const use = ({ protocol, retention }) => {
    controls.protocol.value = protocol;
    propose(retention);
    more.open ||= controls.retention.value !== fields.retention.default;
  };
  const proposeBest = (best) => controls.protocol.value === AUTO && propose(best.retention);
  const advised = advice(form, wanted, use, proposeBest, signal);
  fill(main, h("h1", {}, "Open a round"), form, advised.root);
}

function labels(text) {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
}

/** What there is to say of labels, and whether it is wrong. */
function faultOf(list) {
  const seen = new Set();
  const twice = list.find((label) => seen.size === seen.add(labelKey(label)).size);
  if (list.length === 0) return { text: "", isWrong: false };
  if (twice !== undefined) return { text: `Twice: ${isolated(twice)}`, isWrong: true };
  if (list.length === 1) return { text: "1 item; there must be two.", isWrong: true };
  return { text: `${count(list.length)} items`, isWrong: false };
}

/** The request body, without empty fields; the server validates it. */
function asked(controls, own) {
  const body = { protocol: controls.protocol.value, epsilon: Number(controls.epsilon.value) };
  if (controls.name.value.trim()) body.name = controls.name.value.trim();
  for (const name of TEXTS)
    if (controls[name].value.trim()) body[name] = controls[name].value.trim();
  for (const name of ["domain_size", ...own]) {
    const control = controls[name];
    if (control.value !== "" && !control.disabled) body[name] = Number(control.value);
  }
  const items = labels(controls.items.value);
  if (items.length) body.items = items;
  for (const name of ["access", "read_access", "retention"]) body[name] = controls[name].value;
  return body;
}
