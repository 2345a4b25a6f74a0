// The frequency oracles: their probabilities, their thresholds, and how an item becomes a report.
//
// Each takes the parameters of a round: epsilon, the number of items d, the protocol's own
// parameter and, to perturb, the thresholds. `perturb` takes also an item's index, a source of
// words and, where seeds are given, the ticket's seed; it returns the packed report. Words are
// taken in the order that tests/vectors/README.md says, so that the same words make the same report
// in every language.
import { bucketOf } from "./hashing.js";
import { flipThreshold, holdThreshold, keepThreshold } from "./thresholds.js";
import { below } from "./words.js";

const ALL = (1n << 64n) - 1n;
const PREFIX = 8; // leading bits of the threshold that are decided for 64 numbers at once

const grr = {
  chances({ epsilon, d }) {
    const q = 1 / (d - 1 + Math.exp(epsilon));
    return [Math.exp(epsilon) * q, q];
  },
  thresholds: ({ epsilon, d }) => ({ keep_below: keepThreshold(epsilon, d) }),
  perturb(round, item, words) {
    const [word] = words(1);
    const other = (item + 1 + below(round.d - 1, words)) % round.d;
    return u4(word < round.thresholds.keep_below ? item : other);
  },
};

const oue = {
  chances: ({ epsilon }) => [0.5, 1 / (Math.exp(epsilon) + 1)],
  thresholds: ({ epsilon }) => ({ flip_below: flipThreshold(epsilon) }),
  perturb(round, item, words) {
    const row = unaryRow(round.d, round.thresholds.flip_below, words);
    const [coin] = words(1);
    return setBit(row, item, coin & 1n);
  },
};

const sue = {
  chances({ epsilon }) {
    const root = Math.exp(epsilon / 2);
    return [root / (root + 1), 1 / (root + 1)];
  },
  // The smallest t with ((2^64-t)/t)^2 <= e^epsilon; half a double is a double.
  thresholds: ({ epsilon }) => ({ turn_below: flipThreshold(epsilon / 2) }),
  perturb(round, item, words) {
    const turned = round.thresholds.turn_below;
    const row = unaryRow(round.d, turned, words);
    const [word] = words(1);
    return setBit(row, item, word >= turned);
  },
};

const olh = {
  own: "hash_range",
  ownRange: () => [2, 65536],
  seeds: [64, 4096],
  chances({ epsilon, own }) {
    const e = Math.exp(epsilon);
    return [e / (e + own - 1), 1 / own];
  },
  thresholds: ({ epsilon, own }) => ({ keep_below: keepThreshold(epsilon, own) }),
  perturb(round, item, words, given = null) {
    const seed = given ?? Number(words(1)[0] >> 32n);
    const bucket = bucketOf(seed, item, round.own);
    const [word] = words(1);
    const other = (bucket + 1 + below(round.own - 1, words)) % round.own;
    const report = new DataView(new ArrayBuffer(6));
    report.setUint32(0, seed, true);
    report.setUint16(4, word < round.thresholds.keep_below ? bucket : other, true);
    return new Uint8Array(report.buffer);
  },
};

const ss = {
  own: "subset_size",
  ownRange: ({ d }) => [1, d - 1],
  chances({ epsilon, d, own: k }) {
    const [e, total] = [Math.exp(epsilon), k * Math.exp(epsilon) + d - k];
    return [(k * e) / total, (k * (k - 1) * e + (d - k) * k) / ((d - 1) * total)];
  },
  thresholds: ({ epsilon, d, own }) => ({ hold_below: holdThreshold(epsilon, d, own) }),
  perturb(round, item, words) {
    const [word] = words(1);
    const holds = word < round.thresholds.hold_below;
    const row = otherItems(round.d, item, round.own - Number(holds), words);
    return setBit(row, item, holds);
  },
};

const hr = {
  chances({ epsilon }) {
    const e = Math.exp(epsilon);
    return [e / (1 + e), 0.5];
  },
  thresholds: ({ epsilon }) => ({ keep_below: keepThreshold(epsilon, 2) }),
  perturb(round, item, words) {
    const [word] = words(1);
    const odd = word >= round.thresholds.keep_below;
    const columns = 2 ** (32 - Math.clz32(round.d)); // 2^ceil(log2(d+1))
    let column = Number(words(1)[0] & BigInt(columns - 1));
    const row = item + 1;
    // Changing the bit that is the row's lowest pairs the columns of the two kinds.
    if (isOdd(row & column) !== odd) column ^= row & -row;
    return u4(column);
  },
};

/** The protocols by the name that a round states. */
export const PROTOCOLS = new Map(Object.entries({ grr, oue, olh, sue, ss, hr }));

/**
 * Return the item of a round for numbers, GRR over "-1" and "1", that x becomes: 1 with probability
 * (1+x)/2.
 */
export function roundNumber(x, words) {
  const [word] = words(1);
  return Number(word >> 11n) * 2 ** -53 < (1 + x) / 2 ? 1 : 0;
}

function u4(value) {
  const report = new DataView(new ArrayBuffer(4));
  report.setUint32(0, value, true);
  return new Uint8Array(report.buffer);
}

function isOdd(bits) {
  let odd = false;
  for (let left = bits; left; left &= left - 1) odd = !odd;
  return odd;
}

/**
 * Set item's bit of a packed row, which is bit i % 8 of byte i / 8, to one or zero; return the row.
 */
function setBit(row, item, one) {
  row[item >> 3] = (row[item >> 3] & ~(1 << (item & 7))) | (Number(one) << (item & 7));
  return row;
}

/**
 * Return d packed bits, each one with probability threshold/2^64; the padding bits are zero.
 *
 * Each bit is 1[a uniform 64-bit number < threshold], 64 numbers a word at once, drawn from their
 * highest bit on. A number is open while its bits equal the threshold's, and below at the first
 * difference where the threshold has the one. What is open after the prefix is decided by one word
 * a number.
 */
function unaryRow(d, threshold, words) {
  const lanes = Math.ceil(d / 64);
  const drawn = words(PREFIX * lanes);
  const ones = new BigUint64Array(lanes);
  const open = new BigUint64Array(lanes).fill(ALL);
  drawn.forEach((bits, i) => {
    const lane = i % lanes;
    const place = Math.floor(i / lanes);
    // Bits are fair: a drawn one stands for a number's zero.
    const found = open[lane] & bits;
    if ((threshold >> BigInt(63 - place)) & 1n) {
      ones[lane] |= found;
      open[lane] ^= found;
    } else {
      open[lane] = found;
    }
  });
  const rest = (threshold << BigInt(PREFIX)) & ALL;
  for (let at = openOf(open); at.length; at = openOf(open)) {
    const more = words(at.length);
    at.forEach((lane, i) => {
      const lowest = open[lane] & -open[lane];
      if (more[i] < rest) ones[lane] |= lowest;
      open[lane] ^= lowest;
    });
  }
  return rowOf(ones, d);
}

function openOf(open) {
  return Array.from(open.keys()).filter((lane) => open[lane] !== 0n);
}

function rowOf(ones, d) {
  const view = new DataView(new ArrayBuffer(8 * ones.length));
  ones.forEach((bits, lane) => view.setBigUint64(8 * lane, bits, true));
  const row = new Uint8Array(view.buffer, 0, Math.ceil(d / 8));
  if (d % 8) row[row.length - 1] &= (1 << d % 8) - 1;
  return row.slice();
}

/**
 * Return the packed row of `count` of the d - 1 items other than this one, each set equally likely.
 *
 * Those with the lowest of random keys; where the last of them and the next have equal keys all are
 * drawn again.
 */
function otherItems(d, item, count, words) {
  for (;;) {
    const drawn = words(Math.ceil(d / 2));
    const keys = Uint32Array.from({ length: d }, (_, i) =>
      Number((drawn[i >> 1] >> (i & 1 ? 32n : 0n)) & 0xffffffffn),
    );
    keys[item] = 0xffffffff;
    const ordered = keys.slice().sort();
    const isTie = count > 0 && count < d - 1 && ordered[count - 1] === ordered[count];
    if (isTie) continue;
    const row = new Uint8Array(Math.ceil(d / 8));
    keys.forEach((key, i) => {
      if (count === d - 1 || (count > 0 && key <= ordered[count - 1])) setBit(row, i, 1);
    });
    return row;
  }
}
