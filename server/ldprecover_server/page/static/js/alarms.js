// Alarms of rounds, asked for seldom: some read every report, and a round's answer stays while its reports do.

import { get, isAbort, roundPath } from "./api.js";

const GROWTH = 1.1; // a round is tested again when it has a tenth more reports,
const SECONDS = 30; // and not sooner than this

const known = new Map(); // by id: {n, at, answer, error, closed}

/** What is known of a round's alarms, or undefined. */
export function knownAlarms(id) {
  return known.get(id);
}

/** Tell whether a round should be tested, or tested again. */
export function isDue(round) {
  if (round.n === 0) return false;
  const last = known.get(round.id);
  if (!last) return true;
  if (round.n === last.n) return false;
  const aged = performance.now() - last.at > 1000 * SECONDS;
  return aged && (round.state === "closed" || round.n >= GROWTH * last.n);
}

/** Test a round; what comes of it, an answer or an error, is kept and returned. */
export async function test(round, signal) {
  const found = { n: round.n, at: performance.now(), answer: null, error: null };
  try {
    found.answer = await get(roundPath(round.id, "alarms"), { signal });
    found.n = found.answer.n;
  } catch (error) {
    if (isAbort(error)) throw error;
    found.error = error;
  }
  known.set(round.id, found);
  return found;
}
