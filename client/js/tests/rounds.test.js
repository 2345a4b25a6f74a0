// A round is refused that contradicts itself, or that this client does not understand.
import assert from "node:assert/strict";
import { test } from "node:test";

import { InconsistentRoundError, InvalidAnswerError, UnknownProtocolError } from "../ldprecover.js";
import { PROTOCOLS } from "../src/protocols.js";
import { readRound } from "../src/rounds.js";
import { systemCrypto } from "../src/words.js";
import { Collector, statedRound } from "./helpers.js";

const OWN = { olh: { hash_range: 4 }, ss: { subset_size: 2 }, llh: { hash_range: 3 } };

async function read(fields, changes = {}) {
  return readRound({ ...(await statedRound(fields)), ...changes }, await systemCrypto());
}

test("accepts a valid round of each protocol", async () => {
  for (const protocol of PROTOCOLS.keys()) {
    const round = await read({ protocol, ...OWN[protocol] });
    assert.deepEqual(
      [round.protocol, round.d, round.own],
      [protocol, 4, Object.values(OWN[protocol] ?? { own: null })[0]],
    );
  }
  await read({ items: ["Zürich", "東京", "😀".repeat(300)] });
});

test("accepts missing and unknown thresholds", async () => {
  await read({}, { thresholds: undefined });
  await read({}, { thresholds: { of_a_later_version: "1" } });
});

test("rejects a contradictory round", async () => {
  const { p, thresholds } = await statedRound();
  for (const [changes, words] of [
    [{ p: p * 1.0001 }, /states p/],
    [{ q: 0.3 }, /states q/],
    [{ epsilon: 1.1 }, /states p/],
    [{ epsilon: 0.001 }, /epsilon/],
    [{ epsilon: 11 }, /epsilon/],
    [{ digest: "0".repeat(64) }, /digest/],
    [{ items: ["a", "b", "c", "e"] }, /digest/],
    [{ items: ["b", "a", "c", "d"] }, /digest/],
    [{ items: ["a", "a", "c", "d"] }, /distinct/],
    [{ items: ["caf\u00e9", "cafe\u0301", "c", "d"] }, /distinct/],
    [{ items: ["a", "b", "c", "\u3164"] }, /no text/],
    [{ items: ["a", "b", "c", "\u001b"] }, /no text/],
    [{ items: ["a", "b", "c", "\u{1f600}".repeat(301)] }, /no text of 1 to 300/],
    [{ items: ["a"] }, /1 items/],
    [{ items: ["a", "b", "c", "\ud800"] }, /no text/],
    [{ items: ["a", "b", "c", ""] }, /no text/],
    [{ hash_range: 4 }, /hash_range/],
    [{ thresholds: { keep_below: String(BigInt(thresholds.keep_below) + 1n) } }, /keep_below/],
    [{ thresholds: { keep_below: String(BigInt(thresholds.keep_below) - 1n) } }, /keep_below/],
    [{ thresholds: { keep_below: Number(thresholds.keep_below) } }, /keep_below/],
  ]) {
    await assert.rejects(
      read({}, changes),
      (error) => error instanceof InconsistentRoundError && words.test(error.message),
      words,
    );
  }
  const olh = { protocol: "olh", hash_range: 4 };
  await assert.rejects(read(olh, { hash_range: 5 }), /states p/);
  await assert.rejects(read(olh, { hash_range: 1 }), InconsistentRoundError);
  // Right in all but their range.
  await assert.rejects(read({ protocol: "olh", hash_range: 65537 }), /can have hash_range/);
  await assert.rejects(read({ protocol: "ss", subset_size: 4 }), /can have subset_size/);
  for (const g of [4, 1022]) {
    await assert.rejects(read({ protocol: "llh", hash_range: g }), /can have hash_range/);
  }
  const items = Array.from({ length: 110 }, (_, i) => `item ${i}`);
  await read({ protocol: "llh", hash_range: 101, items: items.slice(0, 101) });
  await assert.rejects(read({ protocol: "llh", hash_range: 103, items }), /can have hash_range/);
});

test("names a missing or malformed field", async () => {
  for (const [name, value] of [
    ["id", "../x"],
    ["id", ""],
    ["name", 7],
    ["protocol", null],
    ["epsilon", "1"],
    ["epsilon", null],
    ["items", "ab"],
    ["items", [1, 2]],
    ["p", null],
    ["q", "0.2"],
    ["digest", undefined],
    ["access", 1],
    ["thresholds", "1"],
  ]) {
    const error = await read({}, { [name]: value }).catch((caught) => caught);
    assert.ok(error instanceof InvalidAnswerError, `${name}: ${error}`);
    assert.match(error.message, new RegExp(name));
  }
  await assert.rejects(
    read({ protocol: "olh", hash_range: 4 }, { hash_range: null }),
    InvalidAnswerError,
  );
});

test("names an unknown protocol and sends nothing", async () => {
  const collector = await Collector.of({});
  collector.round.protocol = "rappor\u0007";
  await assert.rejects(collector.reporter().report("a"), (error) => {
    assert.ok(error instanceof UnknownProtocolError);
    return /protocol 'rappor\ufffd' is not known/.test(error.message);
  });
  assert.equal(collector.posts.length, 0);
});
