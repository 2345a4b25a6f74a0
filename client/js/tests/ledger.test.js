// The ledger keeps what it has taken, and refuses what it cannot trust.
import assert from "node:assert/strict";
import { test } from "node:test";

import { ArgumentError, Ledger, LedgerError, memoryStore } from "../ldprecover.js";
import { Collector } from "./helpers.js";

const report = (collector, store) => collector.reporter({ ledger: new Ledger(store) }).report("a");

test("a report that cannot be stored is not sent", async () => {
  const full = { ...memoryStore(), set: () => Promise.reject(new Error("the quota is exceeded")) };
  const forgetful = { ...memoryStore(), set: () => undefined };
  for (const store of [full, forgetful]) {
    const collector = await Collector.of({});
    await assert.rejects(report(collector, store), LedgerError);
    assert.equal(collector.posts.length, 0);
  }
});

test("another version's ledger is left unchanged", async () => {
  for (const text of ["", "{", "null", "[]", '{"form": 2, "reports": {}}', '{"form": 1}']) {
    const store = memoryStore();
    store.set("ldprecover-ledger", text);
    const collector = await Collector.of({});
    await assert.rejects(report(collector, store), LedgerError);
    assert.equal(store.get("ldprecover-ledger"), text);
    assert.equal(collector.posts.length, 0);
  }
});

test("a ledger outlives its page", async () => {
  const store = memoryStore();
  const collector = await Collector.of({});
  await report(collector, store);
  await assert.rejects(report(collector, store), /has your report/);
});

test("neither the value nor its index is in the ledger", async () => {
  const store = memoryStore();
  const collector = await Collector.of({
    protocol: "oue",
    items: ["a quite secret label", "b", "c", "d"],
  });
  await collector.reporter({ ledger: new Ledger(store) }).report("a quite secret label");
  const text = store.get("ldprecover-ledger");
  assert.doesNotMatch(text, /secret/);
  const names = Object.keys(JSON.parse(text).reports.R1).sort().join(" ");
  const [where, what] = ["formId key openTries", "packed question reason roundId roundName"];
  assert.equal(names, `digest epsilon ${where} ${what} serverUrl state ticket`);
});

test("a round may have any id", async () => {
  const ledger = new Ledger(memoryStore());
  for (const id of ["constructor", "toString", "7"]) {
    const collector = await Collector.of({ id });
    assert.equal((await collector.reporter({ ledger }).report("a")).state, "accepted");
  }
});

test("concurrent claims make one report", async () => {
  const ledger = new Ledger(memoryStore());
  const round = { id: "R1", name: "letters", digest: "d", epsilon: 1 };
  const claim = (key) => ledger.claim({ round, serverUrl: "u", key, perturb: () => "00" });
  const claimed = await Promise.all(["a", "b", "c"].map(claim));
  const keys = claimed.map(({ isNew, entry }) => `${isNew} ${entry.key}`);
  assert.deepEqual(keys, ["true a", "false a", "false a"]);
});

test("limits and stores are checked", () => {
  assert.throws(() => new Ledger(memoryStore(), { maxTotalEpsilon: 0 }), ArgumentError);
  assert.throws(() => new Ledger({ get: () => null }), ArgumentError);
  assert.throws(() => new Ledger(), ArgumentError);
});

test("small epsilons add up exactly", async () => {
  const ledger = new Ledger(memoryStore());
  for (let i = 0; i < 40; i += 1) {
    const round = { id: `R${i}`, name: "r", digest: "d", epsilon: 0.1 };
    await ledger.claim({ round, serverUrl: "u", key: "k", perturb: () => "00" });
  }
  assert.equal(await ledger.spent(), 4);
});
