// The exact integer thresholds of uniform 64-bit words.
//
// Each is the last integer for which the probabilities of any report under any two items have a
// ratio of at most e^epsilon. A double has too few digits for that, so numbers here are integers in
// units of 2^-320. e^epsilon is rounded down by less than 2^-290: that can only increase privacy.

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

/** Return e^epsilon, with every term of its Taylor series rounded down. */
function expBelow(epsilon) {
  const x = exact(epsilon);
  let [sum, term] = [ONE, ONE];
  for (let k = 1n; term > 0n; k += 1n) {
    term = (term * x) / (k << FRACTION);
    sum += term;
  }
  return sum;
}

/** Return the largest t with t(k-1)/(2^64-t) <= e^epsilon: a word below it keeps one of k values. */
export function keepThreshold(epsilon, k) {
  const e = expBelow(epsilon);
  return (WORDS * e) / (e + BigInt(k - 1) * ONE);
}

/** Return the smallest t with (2^64-t)/t <= e^epsilon: a word below it flips a bit. */
export function flipThreshold(epsilon) {
  const sum = expBelow(epsilon) + ONE;
  return (WORDS * ONE + sum - 1n) / sum;
}

/**
 * Return the largest t with t(d-k)/((2^64-t)k) <= e^epsilon: for a word below it the set of k of d
 * items contains the user's.
 */
export function holdThreshold(epsilon, d, k) {
  const e = BigInt(k) * expBelow(epsilon);
  return (WORDS * e) / (e + BigInt(d - k) * ONE);
}
