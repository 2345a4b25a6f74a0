// Alarms of rounds, with a cache: some alarms read every report, and change only with the reports.

import { get, isAbort, roundPath } from "./api.js";

const GROWTH = 1.1; // a round is tested again after a tenth more reports,
const SECONDS = 30; // and at least this time

const known = new Map(); // by id: {n, at, answer, error, closed}

/** The last test of a round, or undefined. */
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

/** Test a round; store and return the response or error. */
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
