// When to send again, and when to give up: exponential back-off with full jitter, Retry-After
// honoured.
import { ArgumentError, refuseOthers } from "./errors.js";

const PERMANENT = new Set([501, 505]);

/** Tell whether an answer says "not now": 408, 429 or 5xx, but what a server can never do. */
export function isPassing(status) {
  return status === 408 || status === 429 || (status >= 500 && !PERMANENT.has(status));
}

/**
 * Tell whether a passing answer says that nothing was done: 408, too slowly sent, or 429, too many.
 */
export function neverTaken(status) {
  return status === 408 || status === 429;
}

/** Return the seconds that Retry-After asks to wait, null where it is absent or says nothing. */
export function retryAfter(headers, now = Date.now()) {
  const value = headers.get("retry-after")?.trim();
  if (!value) return null;
  if (/^[0-9]+$/.test(value)) return Number(value);
  // A date counts from the answer's own, where a page may see that, so that the clock need not be
  // right.
  const seconds = (Date.parse(value) - (Date.parse(headers.get("date") ?? "") || now)) / 1000;
  return Number.isNaN(seconds) ? null : Math.max(0, seconds);
}

/**
 * How persistent to be: at most `attempts` sends, `longest` seconds between two, `total` seconds in
 * all. Before retry i the wait is uniform from 0 to min(longest, base 2^i), after what Retry-After
 * asks for, which counts up to `longest`. `sleep`, `clock` and `draw` are for tests.
 */
export class Retries {
  constructor({
    attempts = 8,
    base = 0.5,
    longest = 30,
    total = 120,
    sleep = (seconds) => new Promise((wake) => setTimeout(wake, 1000 * seconds)),
    clock = () => performance.now() / 1000,
    draw = Math.random,
    ...others
  } = {}) {
    refuseOthers(others);
    if (!(Number.isInteger(attempts) && attempts >= 1))
      throw new ArgumentError("attempts must be at least 1");
    for (const [name, seconds] of Object.entries({ base, longest, total })) {
      if (!(seconds >= 0 && seconds < Infinity))
        throw new ArgumentError(`${name} must be a number of seconds, 0 or more`);
    }
    Object.assign(this, { attempts, base, longest, total, sleep, clock, draw });
  }

  /**
   * Return the retries of one request: asked after each failure, whether to send again once the
   * wait is over.
   */
  begin() {
    const start = this.clock();
    let failures = 0;
    return async (asked = null) => {
      const jitter = this.draw() * Math.min(this.longest, this.base * 2 ** failures);
      const delay = Math.min(asked ?? 0, this.longest) + jitter;
      failures += 1;
      if (failures >= this.attempts || this.clock() - start + delay > this.total) return false;
      await this.sleep(delay);
      return true;
    };
  }
}
