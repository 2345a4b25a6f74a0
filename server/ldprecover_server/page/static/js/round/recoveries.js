// Recoveries of a round: methods on counts answer immediately, the others are jobs that can be cancelled.

import { del, get, isAbort, post, roundPath } from "../api.js";

const FIRST_WAIT = 250; // milliseconds between polls of a job, which grow up to the last
const LAST_WAIT = 2000;

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
 * method changes. Each is `{answer, error, progress, n, asked}`.
 */
export function recoveries(round, changed, signal) {
  const known = new Map();
  const running = new Map(); // by method: {controller, again}

  /** Request a method's recovery, which the server has if it `isKept`. During a request only the latest further one is queued. */
  function ask(method, question, isKept = false) {
    const now = running.get(method.name);
    if (now) {
      now.again = question;
      if (!isFast(method)) now.controller.abort();
      return;
    }
    const controller = new AbortController();
    const stop = () => controller.abort();
    signal.addEventListener("abort", stop);
    const mine = { controller, again: null };
    running.set(method.name, mine);
    const work = isKept || isFast(method) ? directly : asJob;
    work(method, question, controller.signal)
      .then((answer) =>
        set(method.name, { answer, error: null, progress: null, n: answer.n, asked: question }),
      )
      .catch((error) => {
        if (isAbort(error)) set(method.name, { progress: null });
        else set(method.name, { answer: null, error, progress: null, asked: question });
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
      progress: null,
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

  async function asJob(method, question, stop) {
    set(method.name, { progress: 0, error: null });
    const begun = await post(roundPath(round.id, "recover"), question, {
      headers: { Prefer: "respond-async" },
      signal: stop,
    });
    const path = roundPath(round.id, "jobs", begun.job);
    const cancel = () => {
      if (round.state === "deleted") return; // and its jobs with it
      del(path).catch(() => {}); // a job also ends without this
    };
    stop.addEventListener("abort", cancel);
    try {
      for (let wait = FIRST_WAIT; ; wait = Math.min(LAST_WAIT, 1.5 * wait)) {
        const job = await get(path, { signal: stop });
        if (job.state === "done") return job.result;
        if (job.state === "failed")
          throw Object.assign(new Error(job.problem.detail ?? job.problem.title), { job });
        if (job.state === "cancelled") throw new DOMException("cancelled", "AbortError");
        set(method.name, { progress: job.progress });
        await pause(wait, stop);
      }
    } finally {
      stop.removeEventListener("abort", cancel);
    }
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

function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        reject(new DOMException("stopped", "AbortError"));
      },
      { once: true },
    );
  });
}
