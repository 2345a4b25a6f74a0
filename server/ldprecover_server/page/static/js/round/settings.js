// The viewer's settings of a round, all of which are in the address.

import { setQuery } from "../router.js";

export const SORTS = {
  estimate: "best estimate",
  collected: "as collected",
  change: "change by recovery",
  suspicion: "suspicion",
  label: "label",
  index: "order of the round",
};
export const MAX_COMPARED = 4;
/** Shares of malicious reports that certificates may assume, the stops of their slider. */
export const SHARES = [
  0, 0.001, 0.002, 0.003, 0.005, 0.007, 0.01, 0.015, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2,
];
const DEFAULTS = {
  eta: "0.2",
  model: "paper",
  malicious: "",
  sort: "estimate",
  top: "",
  find: "",
  with: "",
  targets: "",
  clean: "",
};

/** Read the settings from an address. */
export function read(query, domainSize) {
  const given = (name) => query.get(name) ?? DEFAULTS[name];
  const indices = given("targets").split(",").filter(Boolean).map(Number);
  return {
    compared: given("with")
      .split(",")
      .filter(Boolean)
      .filter((name) => name !== "auto")
      .slice(0, MAX_COMPARED),
    eta: given("eta") === "auto" ? "auto" : within(Number(given("eta")), 0, 10, 0.2),
    targets: new Set(
      indices.filter((index) => Number.isInteger(index) && index >= 0 && index < domainSize),
    ),
    model: given("model"),
    malicious: SHARES.find((share) => String(share) === given("malicious")) ?? null,
    clean: new Set(given("clean").split(",").filter(Boolean)),
    sort: Object.hasOwn(SORTS, given("sort")) ? given("sort") : "estimate",
    top: given("top") === "all" ? "all" : "",
    find: given("find"),
  };
}

function within(value, low, high, otherwise) {
  return Number.isFinite(value) ? Math.min(high, Math.max(low, value)) : otherwise;
}

/** Write them into the address, without defaults. */
export function write(settings) {
  const texts = {
    with: settings.compared.join(","),
    eta: String(settings.eta),
    model: settings.model,
    malicious: String(settings.malicious ?? ""),
    targets: [...settings.targets].sort((a, b) => a - b).join(","),
    clean: [...settings.clean].join(","),
    sort: settings.sort,
    top: settings.top,
    find: settings.find,
  };
  setQuery(
    Object.fromEntries(
      Object.entries(texts).map(([name, value]) => [name, value === DEFAULTS[name] ? null : value]),
    ),
  );
}

/** Tell whether the address has a setting of "Methods and tests". */
export function asksForMethods(settings) {
  const { compared, targets, clean, eta, model, malicious } = settings;
  return (
    compared.length + targets.size + clean.size > 0 ||
    String(eta) !== DEFAULTS.eta ||
    model !== DEFAULTS.model ||
    malicious !== null
  );
}

/** Why a method cannot be requested with these settings; null if it can. */
export function reasonAgainst(method, settings) {
  if (!method.available) return method.reason;
  if (method.needs.includes("targets") && settings.targets.size === 0) return "it needs targets";
  return method.needs.includes("history") && settings.clean.size === 0
    ? "it needs earlier rounds that are known to be clean"
    : null;
}

/** The request fields of a method, from the settings that it uses. */
export function question(method, settings) {
  const asked = { method: method.name };
  if (method.uses.includes("eta")) asked.eta = settings.eta;
  if (method.uses.includes("targets") && settings.targets.size)
    asked.targets = [...settings.targets].sort((a, b) => a - b);
  if (method.uses.includes("malicious_model") && asked.targets)
    asked.malicious_model = settings.model;
  if (method.uses.includes("history") && settings.clean.size) asked.history = [...settings.clean];
  return asked;
}
