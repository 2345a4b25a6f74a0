// The drill's own calls, with the token from its address.

import { call } from "/page/js/api.js";

const NAME = "ldprecover-drill";
let token = null;

/**
 * Take the token from the address, where it is there, else the one that this tab has kept. A new one is kept once a
 * call has been answered with it: the wrong one in a link does not displace the right one.
 */
export function takeToken(given) {
  token = given ?? kept() ?? token;
  return token !== null;
}

function kept() {
  try {
    return sessionStorage.getItem(NAME);
  } catch {
    return null; // a browser that keeps nothing has it until the page is left
  }
}

async function ask(method, name, options = {}) {
  const used = token;
  const { body } = await call(method, `drill/${name}`, {
    ...options,
    headers: { "X-Drill-Token": used },
  });
  try {
    sessionStorage.setItem(NAME, used);
  } catch {
    // as above
  }
  return body;
}

/** What the form offers. */
export const options = (signal) => ask("GET", "options", { signal });

/** The last run, and how far it is. */
export const run = (signal) => ask("GET", "run", { signal });

/** Begin a run. */
export const begin = (body) => ask("POST", "run", { body });

/** Have the run end. */
export const cancel = () => ask("DELETE", "run");
