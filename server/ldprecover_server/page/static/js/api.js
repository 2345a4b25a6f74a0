// Calls the public API of the server of this page; the only module that calls fetch.

const ROOT = new URL(".", document.baseURI);

let key = null; // in memory only: it is forgotten with the page
let scope = null; // of the key: admin, analyst or report
const keyListeners = new Set();

/** Check a key with the server and store it until the page is left; null removes it. Throws Problem for a wrong one. */
export async function setKey(value) {
  const old = key;
  try {
    key = value || null;
    scope = key && (await get("key")).scope;
  } catch (error) {
    key = old;
    throw error;
  }
  for (const listener of keyListeners) listener(key !== null);
}

/** What the key may do, null without one. */
export function keyScope() {
  return scope;
}

export function hasKey() {
  return key !== null;
}

/** Call `listener` when the key changes, until `signal` aborts. */
export function onKey(listener, signal) {
  keyListeners.add(listener);
  signal?.addEventListener("abort", () => keyListeners.delete(listener));
}

/** A problem that the server states (RFC 9457), or status 0 if it cannot be reached. */
export class Problem extends Error {
  constructor(status, body) {
    super(body.title ?? "The server did not answer");
    this.status = status;
    this.body = body;
  }

  /** What happened, in one or two sentences. */
  get sentence() {
    const { errors = [], detail } = this.body;
    const why = errors.map((each) => `${each.field} ${each.reason}`).join("; ") || detail;
    return why ? `${this.message}: ${why}.`.replace(/\.\.$/, ".") : `${this.message}.`;
  }
}

/** Tell whether a call failed for want of a key, or of a better one. */
export function needsKey(error) {
  return error.status === 401 || error.status === 403;
}

/** The message of an error for a viewer. */
export function sentenceOf(error) {
  if (!(error instanceof Problem)) return `This page failed: ${error.message}.`;
  if (!needsKey(error)) return error.sentence;
  return key
    ? "This needs another key: the server does not take the one you gave."
    : "This needs a key.";
}

/** Tell whether a call was aborted. */
export function isAbort(error) {
  return error?.name === "AbortError";
}

/**
 * Call the API and return the JSON of the response, or the text of another one. `path` is below the page, as
 * `rounds/ID/stats`. Throws Problem, and AbortError once `signal` has aborted.
 */
export async function call(method, path, { body, signal, headers = {}, query } = {}) {
  const url = new URL(path, ROOT);
  for (const [name, value] of Object.entries(query ?? {}))
    if (value !== null && value !== undefined) url.searchParams.set(name, value);
  const sent = { Accept: "application/json", ...headers };
  if (key) sent.Authorization = `Bearer ${key}`;
  if (body !== undefined) sent["Content-Type"] = "application/json";
  let answer;
  let text;
  try {
    answer = await fetch(url, {
      method,
      headers: sent,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
      credentials: "omit",
    });
    text = await answer.text();
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new Problem(0, {
      title: "The server cannot be reached",
      detail: "it may have stopped, or the connection is gone",
    });
  }
  const parsed =
    /json/.test(answer.headers.get("content-type") ?? "") && text ? JSON.parse(text) : null;
  if (!answer.ok)
    throw new Problem(answer.status, parsed ?? { title: `The server answered ${answer.status}` });
  return parsed ?? text;
}

export const get = (path, options) => call("GET", path, options);

export const post = (path, body, options) => call("POST", path, { ...options, body });

export const del = (path) => call("DELETE", path);

/** The path of a round, or of something below it: `roundPath(id, "recover")`. */
export function roundPath(id, ...rest) {
  return ["rounds", encodeURIComponent(id), ...rest].join("/");
}

/** The path of a form, or of something below it. */
export function formPath(id, ...rest) {
  return ["forms", encodeURIComponent(id), ...rest].join("/");
}

/**
 * Run `work(signal)` now and again `seconds` after each end, while the page is visible, until `signal`
 * aborts. `work` may return the seconds to wait this time, at least 1.
 */
export function poll(work, seconds, signal) {
  let timer = null;
  let running = false;
  let again = false;
  const run = async () => {
    if (running || signal.aborted) {
      again = running;
      return;
    }
    if (document.hidden) return;
    running = true;
    clearTimeout(timer);
    let wait = seconds;
    try {
      wait = (await work(signal)) ?? seconds;
    } finally {
      running = false;
      if (!signal.aborted) timer = setTimeout(run, again ? 0 : 1000 * Math.max(1, wait));
      again = false;
    }
  };
  document.addEventListener("visibilitychange", run, { signal });
  signal.addEventListener("abort", () => clearTimeout(timer));
  run();
  return run;
}
