// The frequency oracles: probabilities, thresholds, and the randomised report of an item.
//
// Each method takes the parameters of a round: epsilon, the number of items d and the protocol's
// own parameter. `perturb` also needs the thresholds, an item's index and a source of words; it
// returns the packed report. It takes words in the order of
// tests/vectors/README.md, so the same words make the same report in every language.
import { bucketOf } from "./hashing.js";
import { flipThreshold, holdThreshold, keepThreshold } from "./thresholds.js";
import { below } from "./words.js";

const ALL = (1n << 64n) - 1n;
const PREFIX = 8; // leading bits of the threshold that are compared for 64 numbers together

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
  // The smallest t with ((2^64-t)/t)^2 <= e^epsilon. Halving a double is exact.
  thresholds: ({ epsilon }) => ({ turn_below: flipThreshold(epsilon / 2) }),
  perturb(round, item, words) {
    const threshold = round.thresholds.turn_below;
    const row = unaryRow(round.d, threshold, words);
    const [word] = words(1);
    return setBit(row, item, word >= threshold);
  },
};

const olh = {
  own: "hash_range",
  ownRange: () => [2, 65536],
  chances({ epsilon, own }) {
    const e = Math.exp(epsilon);
    return [e / (e + own - 1), 1 / own];
  },
  thresholds: ({ epsilon, own }) => ({ keep_below: keepThreshold(epsilon, own) }),
  perturb(round, item, words) {
    const seed = Number(words(1)[0] >> 32n);
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
    // Flipping the row's lowest one bit maps even columns to odd ones, one to one.
    if (isOdd(row & column) !== odd) column ^= row & -row;
    return u4(column);
  },
};

const llh = {
  own: "hash_range",
  ownRange: () => [2, 1021],
  allows: ({ d, own: g }) => isPrime(g) && seedsOf(d, g) * g <= 2 ** 20,
  chances: olh.chances,
  thresholds: olh.thresholds,
  perturb(round, item, words) {
    const g = round.own;
    const seed = below(seedsOf(round.d, g), words);
    const bucket = linearBucket(seed, item, g);
    const [word] = words(1);
    const other = (bucket + 1 + below(g - 1, words)) % g;
    return u4(seed * g + (word < round.thresholds.keep_below ? bucket : other));
  },
};

/** The protocols by the name that a round states. */
export const PROTOCOLS = new Map(Object.entries({ grr, oue, olh, sue, ss, hr, llh }));

/**
 * Return the probability that whoever sees one report guesses its user's item, of d equally likely
 * ones: the best guess is an item that the report supports. Of olh it is that of an ideal hash.
 */
export function attackerSuccessRate({ protocol, epsilon, d, own }) {
  const [p, q] = PROTOCOLS.get(protocol).chances({ epsilon, d, own });
  const ratio = Math.exp(epsilon); // of a report's probabilities under an item that it supports
  const rate = (size) => (size > 0 ? ratio : 1) / (ratio * size + d - size);
  if (protocol === "grr" || protocol === "ss") return rate(own ?? 1);
  if (protocol === "hr" || protocol === "llh") {
    const supporting = protocol === "hr" ? (d > 2 ? 1 : 3 / 4) : linearCover(d, own);
    return (1 + (ratio - 1) * supporting) / (d * (1 + (ratio - 1) * q));
  }
  // Each of the d - 1 other items is supported with probability q: a binomial law, in logarithms.
  let log = (d - 1) * Math.log1p(-q);
  let sum = 0;
  for (let k = 0; k < d; k += 1) {
    sum += Math.exp(log) * (p * rate(k + 1) + (1 - p) * rate(k));
    log += Math.log(((d - 1 - k) / (k + 1)) * (q / (1 - q)));
  }
  return sum;
}

/**
 * Return the share of llh's reports that support an item. A seed reaches all g buckets if a digit
 * other than its highest is not zero; with its highest alone, one for each value of the items'.
 */
function linearCover(d, g) {
  const seeds = seedsOf(d, g);
  const highest = Math.ceil((d * g) / seeds);
  return ((seeds - g) * g + (g - 1) * highest + 1) / (seeds * g);
}

/**
 * Return the item of x in a round for numbers, GRR over "-1" and "1": 1 with probability (1+x)/2.
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

/** Return g^k, the number of hash functions over d items: the least power that is at least d. */
function seedsOf(d, g) {
  let seeds = g;
  while (seeds < d) seeds *= g;
  return seeds;
}

function isPrime(g) {
  for (let i = 2; i * i <= g; i += 1) if (g % i === 0) return false;
  return g >= 2;
}

/** Return the inner product modulo g of the base-g digits of a seed and an item. */
function linearBucket(seed, item, g) {
  let bucket = 0;
  for (let [r, v] = [seed, item]; r && v; [r, v] = [Math.floor(r / g), Math.floor(v / g)]) {
    bucket += (r % g) * (v % g);
  }
  return bucket % g;
}

function isOdd(bits) {
  let odd = false;
  for (let rest = bits; rest; rest &= rest - 1) odd = !odd;
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
 * Each bit is 1[a uniform 64-bit number < threshold]. A word has one bit of 64 numbers, the highest
 * bits first. A number is undecided while its bits equal the threshold's; at the first difference
 * it is below if the threshold's bit is one. A number still undecided after the prefix takes one
 * more word.
 */
function unaryRow(d, threshold, words) {
  const n = Math.ceil(d / 64);
  const prefixes = words(PREFIX * n);
  const ones = new BigUint64Array(n);
  const undecided = new BigUint64Array(n).fill(ALL);
  prefixes.forEach((bits, i) => {
    const block = i % n;
    const place = Math.floor(i / n);
    // A random one bit means that the number's bit is zero; both are equally likely.
    const zeros = undecided[block] & bits;
    if ((threshold >> BigInt(63 - place)) & 1n) {
      ones[block] |= zeros;
      undecided[block] ^= zeros;
    } else {
      undecided[block] = zeros;
    }
  });
  const rest = (threshold << BigInt(PREFIX)) & ALL;
  for (let blocks = nonZero(undecided); blocks.length; blocks = nonZero(undecided)) {
    const suffixes = words(blocks.length);
    blocks.forEach((block, i) => {
      const lowest = undecided[block] & -undecided[block];
      if (suffixes[i] < rest) ones[block] |= lowest;
      undecided[block] ^= lowest;
    });
  }
  return rowOf(ones, d);
}

function nonZero(blocks) {
  return Array.from(blocks.keys()).filter((block) => blocks[block] !== 0n);
}

function rowOf(ones, d) {
  const view = new DataView(new ArrayBuffer(8 * ones.length));
  ones.forEach((bits, block) => view.setBigUint64(8 * block, bits, true));
  const row = new Uint8Array(view.buffer, 0, Math.ceil(d / 8));
  if (d % 8) row[row.length - 1] &= (1 << d % 8) - 1;
  return row.slice();
}

/**
 * Return the packed row of `count` of the d - 1 other items, each set equally likely.
 *
 * They are those with the lowest random keys. All keys are drawn again if the last key of the set
 * equals the next one.
 */
function otherItems(d, item, count, words) {
  for (;;) {
    const pairs = words(Math.ceil(d / 2));
    const keys = Uint32Array.from({ length: d }, (_, i) =>
      Number((pairs[i >> 1] >> (i & 1 ? 32n : 0n)) & 0xffffffffn),
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
