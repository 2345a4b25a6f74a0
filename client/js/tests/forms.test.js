// Of a form one question is drawn, once, and no other answer leaves the device.
import assert from "node:assert/strict";
import { test } from "node:test";

import * as client from "../ldprecover.js";
import { systemCrypto } from "../src/words.js";
import { Collector, answerLost, cases, problem } from "./helpers.js";

const { AccessError, AlreadyReportedError, ArgumentError, Ledger, memoryStore } = client;
const { InconsistentRoundError, InvalidAnswerError } = client;
const ANSWERS = { Q0: "a", Q1: "b", Q2: "c" };
const OF_THREE = cases("tickets.json").filter((each) => each.rounds === 3);
const ASSIGNED = [0, 1, 2].map((i) => OF_THREE.find((each) => each.index === i).ticket);

test("a ticket assigns the round, and binds nothing before it reports", async () => {
  for (const [i, ticket] of ASSIGNED.entries()) {
    const collector = await Collector.ofForm("ticket", 3);
    collector.tickets = new Set(ASSIGNED);
    const ledger = new Ledger(memoryStore());
    const report = (used) => collector.reporter({ ledger, ticket: used }).report(ANSWERS);
    for (const [j, other] of ASSIGNED.entries())
      assert.equal((await collector.reporter({ ledger, ticket: other }).round()).id, `R${j}`);
    await assert.rejects(report(null), (error) => error.needs === "ticket");
    const receipt = await report(ticket);
    assert.deepEqual([receipt.roundId, receipt.question], [`R${i}`, `Q${i}`]);
    for (const other of ASSIGNED)
      await assert.rejects(report(other), other === ticket ? AlreadyReportedError : AccessError);
    assert.equal((await collector.reporter({ ledger }).round()).id, `R${i}`);
    assert.equal(collector.posts.length, 1);
    assert.ok(collector.posts[0].url.endsWith(`/rounds/R${i}/reports`));
  }
});

test("a client draws each round with the same probability, and before it is fetched", async (t) => {
  const collector = await Collector.ofForm("client", 3);
  const lost = async (url, request) =>
    url.endsWith("/parameters") ? problem(404, "round-not-found") : collector.fetch(url, request);
  for (const word of [0n, 1n, 2n]) {
    const ledger = new Ledger(memoryStore());
    const words = [2n ** 64n - 1n, word]; // the first is in the tail, which is drawn again
    const fill = (bytes) => new DataView(bytes.buffer).setBigUint64(0, words.shift(), true);
    const drawn = t.mock.method(await systemCrypto(), "getRandomValues", fill);
    await assert.rejects(collector.reporter({ ledger, fetch: lost }).round());
    drawn.mock.restore();
    for (let i = 0; i < 9; i += 1)
      assert.equal((await collector.reporter({ ledger }).round()).id, `R${word}`);
  }
});

test("concurrent and later reports are of one round", async () => {
  const collector = await Collector.ofForm("client", 50);
  const answers = Object.fromEntries(collector.form.rounds.map((each) => [each.question, "d"]));
  const store = memoryStore();
  store.set("ldprecover-ledger", '{"form":1,"reports":{}}'); // from before there were forms
  const ledger = new Ledger(store);
  collector.faults = Array(9).fill(answerLost);
  const calls = Array.from({ length: 3 }, () => collector.reporter({ ledger }).report(answers));
  await Promise.allSettled(calls);
  assert.ok((await collector.reporter({ ledger }).report(answers)).duplicate);
  assert.equal(new Set(collector.posts.map(({ url, key, body }) => url + key + body)).size, 1);
});

test("a ledger has one report a form, and a closed form none", async () => {
  const collector = await Collector.ofForm("ticket", 3);
  collector.tickets = new Set(ASSIGNED);
  const store = memoryStore();
  const tries = ASSIGNED.map((ticket) =>
    collector.reporter({ ledger: new Ledger(store), ticket }).report(ANSWERS),
  );
  const settled = await Promise.allSettled(tries);
  const reasons = settled.filter((each) => each.status === "rejected").map((each) => each.reason);
  assert.ok(reasons.every((each) => each instanceof AlreadyReportedError));
  assert.deepEqual([reasons.length, collector.posts.length], [2, 1]);
  const closed = collector.form.rounds.map((round) => ({ ...round, state: "closed" }));
  collector.form = { ...collector.form, rounds: closed };
  const ledger = new Ledger(memoryStore());
  const late = collector.reporter({ ledger, ticket: ASSIGNED[0] }).report(ANSWERS);
  await assert.rejects(late, (error) => error instanceof AccessError && error.needs === null);
  assert.deepEqual(await ledger.entries(), []);
});

test("each question needs a value, and errors contain none", async () => {
  const collector = await Collector.ofForm("client", 3);
  const wrong = { Q2: { Q0: "secret", Q1: "secret" }, Q1: { Q0: "a", Q2: "a", secret: 1 } };
  Object.assign(wrong, { none: { ...ANSWERS, secret: 1 }, "Q0, Q1, Q2": 0 });
  for (const [missing, answers] of Object.entries(wrong)) {
    const report = collector.reporter().report(answers);
    const error = await report.catch((caught) => caught);
    assert.ok(error instanceof ArgumentError && error.message.endsWith(`: ${missing}`));
    assert.ok(!error.message.includes("secret"));
  }
});

test("no form of a server is trusted", async () => {
  const round = { id: "R0", question: "Q0", state: "open" };
  const many = Array.from({ length: 51 }, (_, i) => ({ ...round, id: `R${i}`, question: `Q${i}` }));
  const lists = [[], many, [round, null], [round, { ...round, id: "R1" }]];
  lists.push([{ ...round, id: "R/x" }], [{ ...round, question: null }]);
  lists.push([round, { ...round, question: "Q1" }]);
  const wrong = [{ id: "../keys" }, { assign: "server" }, ...lists.map((rounds) => ({ rounds }))];
  const collector = await Collector.ofForm("client", 1);
  const right = { ...collector.form };
  for (const fields of wrong) {
    collector.form = { ...right, ...fields };
    await assert.rejects(collector.reporter().form(), InvalidAnswerError, JSON.stringify(fields));
  }
  const ledger = new Ledger(memoryStore());
  collector.form = right;
  await collector.reporter({ ledger }).round();
  for (const fields of [{ id: "R1" }, { question: "Q1" }]) {
    collector.form = { ...right, rounds: [{ ...round, ...fields }] };
    await assert.rejects(collector.reporter({ ledger }).round(), InconsistentRoundError);
  }
  collector.form = right;
  for (const fields of [{ id: "R1" }, { form: null }]) {
    collector.rounds = { R0: { ...right.rounds[0], ...fields } };
    await assert.rejects(collector.reporter({ ledger }).round(), InconsistentRoundError);
  }
});
