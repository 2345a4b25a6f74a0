// Retry policy: exponential back-off with full jitter that honours Retry-After.
import { ArgumentError, rejectUnknown } from "./errors.js";

const PERMANENT = new Set([501, 505]);

/** Tell whether a later try may succeed: 408, 429, or 5xx except 501 and 505. */
export function isTransient(status) {
  return status === 408 || status === 429 || (status >= 500 && !PERMANENT.has(status));
}

/** Tell whether the server did nothing: 408, sent too slowly, or 429, too many requests. */
export function isUnprocessed(status) {
  return status === 408 || status === 429;
}

/** Return the seconds of a Retry-After header, null if it is absent or malformed. */
export function retryAfter(headers, now = Date.now()) {
  const value = headers.get("retry-after")?.trim();
  if (!value) return null;
  if (/^[0-9]+$/.test(value)) return Number(value);
  // A date counts from the response's own, if a page may read that: the clock may be wrong.
  const seconds = (Date.parse(value) - (Date.parse(headers.get("date") ?? "") || now)) / 1000;
  return Number.isNaN(seconds) ? null : Math.max(0, seconds);
}

/**
 * Retry policy: at most `attempts` sends in `total` seconds, waits of up to `longest` seconds.
 *
 * The wait before retry i is Retry-After, up to `longest`, plus a uniform draw from 0 to
 * min(longest, base 2^i). `sleep`, `clock` and `draw` are for tests.
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
    rejectUnknown(others);
    if (!(Number.isInteger(attempts) && attempts >= 1))
      throw new ArgumentError("attempts must be at least 1");
    for (const [name, seconds] of Object.entries({ base, longest, total })) {
      if (!(seconds >= 0 && seconds < Infinity))
        throw new ArgumentError(`${name} must be a number of seconds, 0 or more`);
    }
    Object.assign(this, { attempts, base, longest, total, sleep, clock, draw });
  }

  /**
   * Return the retries of one request: a function to call after each failure, which waits and
   * resolves with whether to send again.
   */
  begin() {
    const start = this.clock();
    let failures = 0;
    return async (retrySeconds = null) => {
      const jitter = this.draw() * Math.min(this.longest, this.base * 2 ** failures);
      const delay = Math.min(retrySeconds ?? 0, this.longest) + jitter;
      failures += 1;
      if (failures >= this.attempts || this.clock() - start + delay > this.total) return false;
      await this.sleep(delay);
      return true;
    };
  }
}
