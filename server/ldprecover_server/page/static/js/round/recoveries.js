// Recoveries of a round: methods on counts answer immediately, the others can be cancelled.

import { hasKey, isAbort, post, roundPath } from "../api.js";

const LONG_AT_ONCE = 2; // browsers open six connections to a server, and other calls need some

/** Tell whether a method needs counts only, so its response takes milliseconds. */
export function isFast(method) {
  return ![...method.needs, ...method.better_with].includes("reports");
}

/** The recommended method, in the form of GET /methods; it may read the reports. */
export const AUTO = {
  name: "auto",
  needs: ["counts"],
  better_with: ["reports"],
  uses: ["targets", "history"],
  available: true,
};

/**
 * Keep the recoveries of a round: `recoveries(round, changed, signal)` calls `changed(name)` when the result of a
 * method changes. Each is `{answer, error, isRunning, n, asked}`.
 */
export function recoveries(round, changed, signal) {
  const known = new Map();
  const running = new Map(); // by method: {controller, again}
  const long = new Set(); // the ends of long requests

  /** Request a method's recovery, which the server has if it `isKept`. During a request only the latest further one is queued. */
  function ask(method, question, isKept = false) {
    const now = running.get(method.name);
    if (now) {
      now.again = question;
      // With a key the server would finish the abandoned one beside the next.
      if (!isFast(method) && !hasKey()) now.controller.abort();
      return;
    }
    const controller = new AbortController();
    const stop = () => controller.abort();
    signal.addEventListener("abort", stop);
    const mine = { controller, again: null };
    running.set(method.name, mine);
    const work = isKept || isFast(method) ? directly : inTurn;
    work(method, question, controller.signal)
      .then((answer) =>
        set(method.name, { answer, error: null, isRunning: false, n: answer.n, asked: question }),
      )
      .catch((error) => {
        if (isAbort(error)) set(method.name, { isRunning: false });
        else set(method.name, { answer: null, error, isRunning: false, asked: question });
      })
      .finally(() => {
        signal.removeEventListener("abort", stop);
        running.delete(method.name);
        if (mine.again && !signal.aborted) ask(method, mine.again);
      });
  }

  function set(name, change) {
    known.set(name, {
      answer: null,
      error: null,
      isRunning: false,
      n: null,
      asked: null,
      ...known.get(name),
      ...change,
    });
    if (!signal.aborted) changed(name);
  }

  function directly(method, question, stop) {
    return post(roundPath(round.id, "recover"), question, { signal: stop });
  }

  /** Request a recovery that may take minutes, once fewer than LONG_AT_ONCE others run. */
  async function inTurn(method, question, stop) {
    set(method.name, { isRunning: true, error: null });
    const aborted = new Promise((_, reject) =>
      stop.addEventListener("abort", () => reject(stop.reason)),
    );
    aborted.catch(() => {}); // without an unhandled rejection when nothing waits for it
    while (long.size >= LONG_AT_ONCE) await Promise.race([...long, aborted]);
    const work = directly(method, question, stop);
    const end = work.catch(() => {}).then(() => long.delete(end));
    long.add(end);
    return work;
  }

  return {
    ask,
    get: (name) => known.get(name) ?? null,
    isPending: (name) => running.has(name),
    cancel: (name) => {
      const now = running.get(name);
      if (now) now.again = null;
      now?.controller.abort();
    },
    forget: (name) => known.delete(name),
  };
}
