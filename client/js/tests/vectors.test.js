// What every client must compute, as tests/vectors pins it.
import assert from "node:assert/strict";
import { test } from "node:test";

import { assignedRound } from "../src/forms.js";
import { bucketOf, hashItem } from "../src/hashing.js";
import { labelKey } from "../src/labels.js";
import { PROTOCOLS, roundNumber } from "../src/protocols.js";
import { digestOf, hex } from "../src/rounds.js";
import { flipThreshold, holdThreshold, keepThreshold } from "../src/thresholds.js";
import { shuffled, systemCrypto } from "../src/words.js";
import { cases, fixedWords, parametersOf } from "./helpers.js";

test("the round that a ticket assigns", () => {
  for (const { ticket, rounds, index } of cases("tickets.json"))
    assert.equal(assignedRound(ticket, rounds), index, ticket);
});

test("hashes and buckets", () => {
  for (const { seed, item, hash, hash_range, bucket } of cases("hash.json")) {
    assert.deepEqual([hashItem(seed, item), bucketOf(seed, item, hash_range)], [hash, bucket]);
  }
});

test("thresholds, to the last unit", () => {
  for (const { epsilon, values, domain_size, subset_size, ...found } of cases("thresholds.json")) {
    if (values) assert.equal(String(keepThreshold(epsilon, values)), found.keep_below);
    else if (subset_size)
      assert.equal(String(holdThreshold(epsilon, domain_size, subset_size)), found.hold_below);
    else if (found.turn_below) assert.equal(String(flipThreshold(epsilon / 2)), found.turn_below);
    else assert.equal(String(flipThreshold(epsilon)), found.flip_below);
  }
});

test("digests, p and q of parameters", async () => {
  for (const fields of cases("parameters.json")) {
    const round = {
      ...parametersOf({ ...fields, domain_size: fields.items.length }),
      items: fields.items,
      practice: fields.practice,
    };
    assert.equal(await digestOf(round, await systemCrypto()), fields.digest);
    PROTOCOLS.get(fields.protocol)
      .chances(round)
      .forEach((chance, i) => {
        const right = [fields.p, fields.q][i];
        assert.ok(Math.abs(chance - right) <= 1e-14 * right, fields.digest);
      });
  }
});

test("each order is equally likely", () => {
  const orders = [0, 1, 2].flatMap((i) =>
    [0, 1].map((j) => shuffled("abc", fixedWords([i, j].map(String))[0]).join("")),
  );
  assert.equal(new Set(orders).size, 6);
});

test("keys of labels", () => {
  for (const { label, key } of cases("labels.json")) assert.equal(labelKey(label), key);
});

test("fixed words make the report of the vectors", () => {
  const seen = new Set();
  for (const fields of cases("reports.json")) {
    const [words, left] = fixedWords(fields.words);
    const packed = PROTOCOLS.get(fields.protocol).perturb(parametersOf(fields), fields.item, words);
    assert.equal(hex(packed), fields.packed, JSON.stringify(fields));
    assert.equal(left(), 0);
    seen.add(fields.protocol);
  }
  assert.deepEqual(seen, new Set(PROTOCOLS.keys()));
});

test("fixed words round a number to the item of the vectors", () => {
  for (const { number, words, item } of cases("reports.json", "numbers")) {
    assert.equal(roundNumber(number, fixedWords(words)[0]), item);
  }
});
