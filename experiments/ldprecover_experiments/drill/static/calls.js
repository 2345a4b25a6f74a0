// The drill's calls, with the token from its address.

import { call } from "/page/js/api.js";

const NAME = "ldprecover-drill";
let token = null;

/**
 * Return the token of the address, or else of this tab. A new token is stored after a successful call, so a
 * wrong token in a link does not replace the right one.
 */
export function takeToken(given) {
  token = given ?? kept() ?? token;
  return token !== null;
}

function kept() {
  try {
    return sessionStorage.getItem(NAME);
  } catch {
    return null; // without storage the token lasts until the page is left
  }
}

async function ask(method, name, options = {}) {
  const used = token;
  const body = await call(method, `drill/${name}`, {
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

/** The choices of the form. */
export const options = (signal) => ask("GET", "options", { signal });

/** The last run and its progress. */
export const run = (signal) => ask("GET", "run", { signal });

/** Start a run. */
export const begin = (body) => ask("POST", "run", { body });

/** Cancel the run. */
export const cancel = () => ask("DELETE", "run");
