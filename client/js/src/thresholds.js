// The integers that uniform 64-bit words are compared with, exactly.
//
// They are rounded to the private side: of all integers each is the last for which the ratio of
// the probabilities of any report under any two items is at most e^epsilon. A double has too few
// digits for that, so numbers here are integers in units of 2^-320. e^epsilon is rounded down, by
// less than 2^-290, which takes every threshold to the private side, if it changes one at all.

const FRACTION = 320n;
const ONE = 1n << FRACTION;
const WORDS = 1n << 64n;

/** Return a double from 2^-200 to 2^200 in units of 2^-320, exactly. */
function exact(x) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, x);
  const bits = view.getBigUint64(0);
  const mantissa = (bits & ((1n << 52n) - 1n)) | (1n << 52n);
  return mantissa << (FRACTION + (bits >> 52n) - 1075n);
}

/** Return e^epsilon rounded down: every term of its Taylor series is. */
function expBelow(epsilon) {
  const x = exact(epsilon);
  let [sum, term] = [ONE, ONE];
  for (let k = 1n; term > 0n; k += 1n) {
    term = (term * x) / (k << FRACTION);
    sum += term;
  }
  return sum;
}

/** Return the largest t with t(k-1)/(2^64-t) <= e^epsilon: below it one of k values is kept. */
export function keepThreshold(epsilon, k) {
  const e = expBelow(epsilon);
  return (WORDS * e) / (e + BigInt(k - 1) * ONE);
}

/** Return the smallest t with (2^64-t)/t <= e^epsilon: below it a bit is turned over. */
export function flipThreshold(epsilon) {
  const sum = expBelow(epsilon) + ONE;
  return (WORDS * ONE + sum - 1n) / sum;
}

/**
 * Return the largest t with t(d-k)/((2^64-t)k) <= e^epsilon: below it a set of k of d items holds
 * the user's.
 */
export function holdThreshold(epsilon, d, k) {
  const e = BigInt(k) * expBelow(epsilon);
  return (WORDS * e) / (e + BigInt(d - k) * ONE);
}
