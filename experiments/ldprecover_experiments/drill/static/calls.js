// The drill's own calls, with the token from its address.

import { call } from "/page/js/api.js";

const NAME = "ldprecover-drill";
let token = null;

/** Take the token from the address, where it is there. It stays with this tab, so that loading the page anew keeps it. */
export function takeToken(given) {
  try {
    if (given) sessionStorage.setItem(NAME, given);
    token = given ?? sessionStorage.getItem(NAME);
  } catch {
    token = given ?? token; // a browser that keeps nothing has it until the page is left
  }
  return token !== null;
}

async function ask(method, name, options = {}) {
  return (await call(method, `drill/${name}`, { ...options, headers: { "X-Drill-Token": token } })).body;
}

/** What the form offers. */
export const options = (signal) => ask("GET", "options", { signal });

/** The last run, and how far it is. */
export const run = (signal) => ask("GET", "run", { signal });

/** Begin a run. */
export const begin = (body) => ask("POST", "run", { body });

/** Have the run end. */
export const cancel = () => ask("DELETE", "run");
