// A form that opens a round. Its fields come from the API's description, so it knows no protocol.

import { advice } from "../advice.js";
import { get, hasKey, post, sentenceOf } from "../api.js";
import { field, fill, h, notice } from "../dom.js";
import { askForKey } from "../key.js";
import { go } from "../router.js";

export async function show({ main, query, signal }) {
  const document = await get("openapi.json", { signal });
  const fields = document.components.schemas.NewRound.properties;
  const known = new Set([
    "protocol",
    "epsilon",
    "name",
    "items",
    "domain_size",
    "access",
    "read_access",
    "retention",
    "canaries",
    "quarantine",
    "series",
  ]);
  const own = Object.keys(fields).filter((name) => !known.has(name));
  const select = (name) =>
    h(
      "select",
      { name, value: query.get(name) ?? fields[name].default ?? fields[name].enum[0] },
      fields[name].enum.map((value) => h("option", { value }, value)),
    );
  const input = (name, attributes) =>
    h("input", { name, value: query.get(name) ?? "", autocomplete: "off", ...attributes });

  const controls = {
    name: input("name", { pattern: "[a-z0-9][a-z0-9._\\-]{0,63}" }),
    protocol: select("protocol"),
    epsilon: h("input", {
      name: "epsilon",
      type: "number",
      min: fields.epsilon.minimum,
      max: fields.epsilon.maximum,
      step: "any",
      required: true,
      value: query.get("epsilon") ?? "1",
    }),
    items: h("textarea", { name: "items", rows: 6, spellcheck: "false" }),
    domain_size: input("domain_size", { type: "number", min: 2, step: 1 }),
    series: input("series", {}),
    retention: h("input", {
      name: "retention",
      value: query.get("retention") ?? fields.retention.default,
    }),
    access: select("access"),
    read_access: select("read_access"),
    canaries: input("canaries", { type: "number", min: 1, max: 100, step: 1 }),
    quarantine: h("input", { name: "quarantine", type: "checkbox" }),
    ...Object.fromEntries(own.map((name) => [name, input(name, { type: "number", step: 1 })])),
  };
  const said = h("div", {});
  const helped = (name, title) => field(title, controls[name], fields[name].description);

  const submit = async (event) => {
    event.preventDefault();
    fill(said);
    if (!hasKey() && !(await askForKey())) return;
    try {
      const round = await post("rounds", asked(controls, own));
      go(["rounds", round.name]);
    } catch (error) {
      fill(said, notice("bad", sentenceOf(error)));
    }
  };
  const more = h(
    "details",
    { open: controls.retention.value !== fields.retention.default },
    h(
      "summary",
      {},
      "Who may submit and read, retention, canaries, quarantine, and parameters of single protocols",
    ),
    h(
      "div",
      { class: "cards" },
      helped("access", "Who may submit"),
      helped("read_access", "Who may read"),
      helped("retention", "Retention of reports"),
      helped("canaries", "Canaries"),
      helped("quarantine", "Quarantine"),
      own.map((name) => helped(name, name.replaceAll("_", " "))),
    ),
  );
  const form = h(
    "form",
    { class: "card", onsubmit: submit },
    h(
      "div",
      { class: "cards" },
      helped("name", "Name"),
      helped("protocol", "Protocol"),
      helped("epsilon", "Epsilon"),
      helped("series", "Series"),
    ),
    h(
      "div",
      { class: "cards" },
      field(
        "Items, one label a line",
        controls.items,
        "Distinct labels, at least two; or leave this empty and say how many:",
      ),
      helped("domain_size", "Number of items"),
    ),
    more,
    said,
    h("p", { class: "quiet" }, "Nothing of this can be changed once the round is open."),
    h("button", { type: "submit", class: "main" }, "Open the round"),
  );
  const wanted = () => ({
    domain_size: labels(controls.items.value).length || Number(controls.domain_size.value),
    epsilon: Number(controls.epsilon.value),
  });
  // The proposal belongs to its protocol; a retention that the user has entered stays.
  let proposed = controls.retention.value;
  const propose = (retention) => {
    if (controls.retention.value !== proposed) return;
    controls.retention.value = proposed = retention;
    more.open ||= retention !== fields.retention.default;
  };
  controls.protocol.addEventListener("change", () => propose(fields.retention.default));
  const use = (protocol, retention) => {
    controls.protocol.value = protocol;
    propose(retention);
  };
  fill(main, h("h1", {}, "Open a round"), form, advice(form, wanted, use, signal));
}

function labels(text) {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
}

/** The request body, without empty fields; the server validates it. */
function asked(controls, own) {
  const body = { protocol: controls.protocol.value, epsilon: Number(controls.epsilon.value) };
  for (const name of ["name", "series", "retention"])
    if (controls[name].value.trim()) body[name] = controls[name].value.trim();
  for (const name of ["domain_size", "canaries", ...own])
    if (controls[name].value !== "") body[name] = Number(controls[name].value);
  const items = labels(controls.items.value);
  if (items.length) body.items = items;
  body.access = controls.access.value;
  body.read_access = controls.read_access.value;
  if (controls.quarantine.checked) body.quarantine = true;
  return body;
}
