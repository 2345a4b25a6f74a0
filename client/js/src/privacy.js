// What a report tells of its user, in the numbers that a survey states.
import { attackerSuccessRate } from "./protocols.js";

/**
 * Return what a round's report tells, as numbers. `times` is e^epsilon, `rate` the probability that
 * whoever sees the report guesses its item, of d equally likely ones, and `chance` that without it.
 *
 * No report of any epsilon-private protocol is guessed more often than `most`, e^epsilon/(e^epsilon
 * + d - 1), which is also the probability that GRR keeps an item. Of `cases` these are `right`,
 * rounded up, since it is the most; and without the report `blind`, one or more.
 */
export function privacyNumbers(round) {
  const { epsilon, d } = round;
  const times = Math.exp(epsilon);
  const most = times / (times + d - 1);
  const cases = 10 ** Math.max(2, Math.ceil(Math.log10(d)));
  const [right, blind] = [Math.ceil(most * cases - 1e-9), Math.round(cases / d)];
  return { times, most, cases, right, blind, rate: attackerSuccessRate(round), chance: 1 / d };
}
