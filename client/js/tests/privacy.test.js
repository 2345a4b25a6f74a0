// Reports satisfy epsilon-LDP exactly, and are drawn with p and q.
import assert from "node:assert/strict";
import { test } from "node:test";

import { bucketOf } from "../src/hashing.js";
import { PROTOCOLS } from "../src/protocols.js";
import { flipThreshold, holdThreshold, keepThreshold } from "../src/thresholds.js";
import { below, systemCrypto, wordsFrom } from "../src/words.js";
import { fixedWords, parametersOf } from "./helpers.js";

const WORDS = 1n << 64n;
const UNIT = 1n << 400n;

/**
 * Return [low, high] with low < e^epsilon 2^400 < high: e^(epsilon/1024) by its series, squared ten
 * times.
 */
function expBetween(epsilon) {
  const scaled = BigInt(epsilon * 2 ** 60) << 340n; // in units of 2^-400, exact for epsilon from 0.01
  const x = scaled >> 10n;
  const remainder = scaled - (x << 10n) ? 1n : 0n;
  const bound = (isHigh) => {
    const up = isHigh ? 1n : 0n;
    let [sum, term] = [UNIT, UNIT];
    for (let k = 1n; k < 80n; k += 1n) {
      term = (term * (x + up * remainder)) / (k * UNIT) + up;
      sum += term;
    }
    sum += up;
    for (let i = 0; i < 10; i += 1) sum = (sum * sum) / UNIT + up;
    return sum;
  };
  return [bound(false), bound(true)];
}

async function epsilons() {
  const words = wordsFrom(await systemCrypto());
  const drawn = Array.from(words(60), (word) => 0.01 + 9.99 * (Number(word >> 11n) / 2 ** 53));
  return [0.01, 0.1, 0.5, 1, Math.log(3), 2, 10, ...drawn];
}

/**
 * Check that a ratio a/b of probabilities keeps e^epsilon, and that one step further, it would not.
 */
function assertLast(epsilon, [a, b], [stepA, stepB]) {
  const [low, high] = expBetween(epsilon);
  assert.ok(a * UNIT <= low * b, `the ratio is above e^${epsilon}`);
  assert.ok(stepA * UNIT > high * stepB, `the threshold for ${epsilon} is not the last one`);
}

test("each threshold is the last that keeps epsilon", async () => {
  for (const epsilon of await epsilons()) {
    for (const k of [2, 3, 102, 100000]) {
      const ratio = (t) => [t * BigInt(k - 1), WORDS - t];
      const t = keepThreshold(epsilon, k);
      assertLast(epsilon, ratio(t), ratio(t + 1n));
    }
    for (const [d, k] of [
      [2, 1],
      [5, 2],
      [102, 39],
      [102, 101],
    ]) {
      const ratio = (t) => [t * BigInt(d - k), (WORDS - t) * BigInt(k)];
      const t = holdThreshold(epsilon, d, k);
      assertLast(epsilon, ratio(t), ratio(t + 1n));
    }
    const ratio = (t) => [WORDS - t, t];
    const flip = flipThreshold(epsilon);
    assertLast(epsilon, ratio(flip), ratio(flip - 1n));
    const squared = (t) => [(WORDS - t) ** 2n, t ** 2n];
    const turn = flipThreshold(epsilon / 2);
    assertLast(epsilon, squared(turn), squared(turn - 1n));
  }
});

test("the words at a threshold fall on its two sides", () => {
  const round = parametersOf({ protocol: "grr", epsilon: 1, domain_size: 5 });
  const { keep_below: t } = round.thresholds;
  const item = (word) => PROTOCOLS.get("grr").perturb(round, 2, fixedWords([word, 0n])[0])[0];
  assert.deepEqual([item(t - 1n), item(t)], [2, 3]);
});

test("uniform integers skip the biased tail", () => {
  const limit = (WORDS / 3n) * 3n;
  const [words, left] = fixedWords([limit, WORDS - 1n, limit - 1n]);
  assert.equal(below(3, words), 2);
  assert.equal(left(), 0);
  assert.equal(below(4, fixedWords([WORDS - 1n])[0]), 3);
});

test("random values are requested in allowed sizes", () => {
  const sizes = [];
  wordsFrom({ getRandomValues: (bytes) => sizes.push(bytes.length) })(20000);
  assert.deepEqual(sizes, [65536, 65536, 28928]);
});

const SETTINGS = [
  ["grr", {}, (report, item) => view(report).getUint32(0, true) === item],
  ["oue", {}, bit],
  ["sue", {}, bit],
  ["ss", { subset_size: 3 }, bit],
  [
    "olh",
    { hash_range: 4 },
    (r, item) => bucketOf(view(r).getUint32(0, true), item, 4) === view(r).getUint16(4, true),
  ],
  [
    "llh",
    { hash_range: 3 }, // the two digits of report / 3 and of the item
    (report, item) => {
      const x = view(report).getUint32(0, true);
      const [low, high] = [Math.floor(x / 3) % 3, Math.floor(x / 9)];
      return (low * (item % 3) + high * Math.floor(item / 3)) % 3 === x % 3;
    },
  ],
  ["hr", {}, (report, item) => ones((item + 1) & view(report).getUint32(0, true)) % 2 === 0],
];

for (const [protocol, own, supports] of SETTINGS) {
  // Each share is within Hoeffding's bound of its probability but once in 10^9 runs.
  test(`${protocol}: reports support their user's item with probability p, and each other one with q`, async () => {
    const words = wordsFrom(await systemCrypto());
    const d = 9;
    const round = parametersOf({ protocol, epsilon: 1, domain_size: d, ...own });
    const [p, q] = PROTOCOLS.get(protocol).chances(round);
    const n = 8000;
    const item = 7;
    const counts = new Array(d).fill(0);
    for (let i = 0; i < n; i += 1) {
      const report = PROTOCOLS.get(protocol).perturb(round, item, words);
      for (let v = 0; v < d; v += 1) counts[v] += supports(report, v);
    }
    const tolerance = Math.sqrt(Math.log((2 * d) / 1e-9) / (2 * n));
    counts.forEach((count, v) => {
      const chance = v === item ? p : q;
      assert.ok(
        Math.abs(count / n - chance) <= tolerance,
        `item ${v}: ${count / n}, not ${chance}`,
      );
    });
    assert.ok(p - q > 2 * tolerance); // else nothing would be told apart
  });
}

function view(report) {
  return new DataView(report.buffer);
}

function bit(report, item) {
  return (report[item >> 3] >> (item & 7)) & 1;
}

function ones(bits) {
  return bits.toString(2).replaceAll("0", "").length;
}
