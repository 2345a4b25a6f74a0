// A value is perturbed once, written down before it is sent, and the same report goes out until it
// is answered.
import assert from "node:assert/strict";
import { test } from "node:test";

import * as client from "../ldprecover.js";
import { systemCrypto } from "../src/words.js";
import { Collector, answerLost, failure, problem, requestLost } from "./helpers.js";

const { AccessError, AlreadyReportedError, ArgumentError, EpsilonSpentError } = client;
const { EpsilonTooHighError, InconsistentRoundError, InvalidAnswerError, Ledger } = client;
const { RefusedError, Reporter, Retries, UnansweredError, UnknownItemError, memoryStore } = client;
const TICKET = `${"A".repeat(22)}.${"A".repeat(22)}`;
const OTHER = `${"B".repeat(22)}.${"z".repeat(22)}`;

test("a second report throws AlreadyReportedError", async () => {
  const collector = await Collector.of({});
  const reporter = collector.reporter();
  const receipt = await reporter.report("b");
  assert.deepEqual(receipt, {
    roundId: "R1",
    roundName: "letters",
    question: null,
    epsilon: 1,
    state: "accepted",
    resent: false,
    duplicate: false,
    reason: null,
  });
  for (const value of ["b", "a", 2])
    await assert.rejects(reporter.report(value), AlreadyReportedError);
  assert.equal(collector.posts.length, 1);
  assert.equal(collector.stored.size, 1);
  assert.match(collector.posts[0].key, /^[0-9a-f]{32}$/);
  assert.equal(await reporter.ledger.spent(), 1);
  assert.equal((await reporter.ledger.entries())[0].openTries, 0); // which are of tickets
});

test("a lost response repeats the same bytes and key", async () => {
  const collector = await Collector.of({ protocol: "olh", hash_range: 4 });
  collector.faults = [answerLost, answerLost, answerLost];
  const ledger = new Ledger(memoryStore());
  const error = await failure(collector.reporter({ ledger }).report("a"));
  assert.ok(error instanceof UnansweredError);
  assert.match(error.note, /written down/);
  const receipt = await collector.reporter({ ledger }).report("d"); // another page; its value is not looked at
  assert.deepEqual([receipt.state, receipt.resent, receipt.duplicate], ["accepted", true, true]);
  assert.equal(new Set(collector.posts.map(({ key, body }) => key + body)).size, 1);
  assert.equal(collector.posts.length, 4);
  assert.equal(collector.stored.size, 1);
});

test("without subtle only practice rounds are reported to", async (t) => {
  const platform = await systemCrypto();
  const values = { getRandomValues: (bytes) => platform.getRandomValues(bytes) };
  const collectors = [await Collector.of({}), await Collector.of({ practice: true })];
  const property = Object.getOwnPropertyDescriptor(globalThis, "crypto");
  t.after(() =>
    Object.defineProperty(globalThis, "crypto", property ?? { value: undefined, writable: true }),
  );
  Object.defineProperty(globalThis, "crypto", { value: values, configurable: true });
  const [other, practice] = collectors.map((collector) => collector.reporter());
  await assert.rejects(other.report("a"), (error) => {
    assert.ok(error instanceof ArgumentError);
    return /over https, .*over plain http only practice rounds/.test(error.message);
  });
  assert.equal((await practice.report("a")).state, "accepted");
  assert.deepEqual(
    collectors.map(({ posts }) => posts.length),
    [0, 1],
  );
});

test("the report is stored before it is sent", async () => {
  const collector = await Collector.of({});
  const store = memoryStore();
  collector.faults = [
    async (send) => {
      const [entry] = await new Ledger(store).entries();
      assert.deepEqual(
        [entry.state, entry.packed, entry.key],
        ["pending", collector.posts[0].body, collector.posts[0].key],
      );
      return send();
    },
  ];
  await collector.reporter({ ledger: new Ledger(store) }).report("a");
  assert.equal(collector.posts.length, 1);
});

test("two concurrent calls make one report", async () => {
  const collector = await Collector.of({ protocol: "oue" });
  const ledger = new Ledger(memoryStore());
  const values = ["a", "b", "c"];
  const calls = values.map((value) => collector.reporter({ ledger }).report(value));
  const said = await Promise.all(calls.map((call) => call.catch((error) => error)));
  assert.ok(
    said.every((each) => each.state === "accepted" || each instanceof AlreadyReportedError),
  );
  assert.equal(collector.stored.size, 1);
  assert.equal((await ledger.entries()).length, 1);
});

test("changed parameters are an InconsistentRoundError", async () => {
  const collector = await Collector.of({});
  const ledger = new Ledger(memoryStore());
  collector.faults = [requestLost, requestLost, requestLost];
  await assert.rejects(collector.reporter({ ledger }).report("a"), UnansweredError);
  const changed = await Collector.of({ items: ["d", "c", "b", "a"] });
  await assert.rejects(changed.reporter({ ledger }).report("a"), /other parameters/);
  assert.equal(changed.posts.length, 0);
});

test("resume sends no key to another server", async () => {
  const collector = await Collector.of({});
  const ledger = new Ledger(memoryStore());
  collector.faults = [requestLost, requestLost, requestLost];
  await assert.rejects(collector.reporter({ ledger }).report("a"), UnansweredError);
  const elsewhere = { ledger, url: "https://elsewhere.test", key: "a report key" };
  const receipts = await collector.reporter(elsewhere).resume();
  assert.deepEqual(
    receipts.map(({ state, resent }) => [state, resent]),
    [["accepted", true]],
  );
  assert.ok(
    collector.posts.every(
      ({ url, authorization }) => url.startsWith(collector.url) && !authorization,
    ),
  );
  assert.deepEqual(await collector.reporter(elsewhere).resume(), []);
});

test("a report for one server is not sent to another", async () => {
  const collector = await Collector.of({});
  const ledger = new Ledger(memoryStore());
  collector.faults = [requestLost, requestLost, requestLost];
  await assert.rejects(collector.reporter({ ledger }).report("a"), UnansweredError);
  const impostor = await Collector.of({});
  impostor.url = "https://impostor.test";
  await assert.rejects(impostor.reporter({ ledger }).report("a"), InconsistentRoundError);
  assert.equal(impostor.posts.length, 0);
});

test("an unknown value is not sent or repeated in the message", async () => {
  const collector = await Collector.of({});
  for (const value of ["secret", 7, -1, 1.5, true, null, undefined, "e", 4, "1"]) {
    const error = await failure(collector.reporter().report(value));
    assert.ok(error instanceof UnknownItemError, String(value));
    assert.doesNotMatch(error.message, /secret/);
  }
  assert.equal(collector.posts.length, 0);
});

test("a label in another form is the item", async ({ mock }) => {
  mock.method(await systemCrypto(), "getRandomValues", (bytes) => bytes.fill(0));
  for (const value of ["cafe\u0301", "ca\u00adf\u00e9", 1]) {
    const collector = await Collector.of({ items: ["a", "caf\u00e9"] });
    await collector.reporter().report(value);
    assert.equal(collector.posts[0].body, "01000000");
  }
});

test("a round for numbers takes -1 to 1", async () => {
  const right = [0.3, "-0.5", 1];
  for (const value of [...right, 1.01, "x", NaN, "", true]) {
    const collector = await Collector.of({ items: ["-1", "1"] });
    const reported = collector.reporter().report(value);
    if (right.includes(value)) assert.equal((await reported).state, "accepted");
    else await assert.rejects(reported, UnknownItemError);
  }
});

test("limits are checked before anything is perturbed", async () => {
  const collector = await Collector.of({ epsilon: 2.5 });
  await assert.rejects(collector.reporter().report("a"), EpsilonTooHighError);
  assert.equal((await collector.reporter({ maxEpsilon: 2.5 }).report("a")).state, "accepted");
  const ledger = new Ledger(memoryStore(), { maxTotalEpsilon: 0.3 });
  for (const [i, fits] of [true, true, true, false].entries()) {
    const next = await Collector.of({ id: `R${i}`, epsilon: 0.1 });
    if (fits) await next.reporter({ ledger }).report("a");
    else await assert.rejects(next.reporter({ ledger }).report("a"), EpsilonSpentError);
  }
  assert.equal(await ledger.spent(), 0.3);
});

test("a final refusal is stored, and the report not sent again", async () => {
  const collector = await Collector.of({});
  collector.faults = [() => problem(409, "round-closed")];
  const reporter = collector.reporter();
  const error = await failure(reporter.report("a"));
  assert.ok(error instanceof RefusedError);
  assert.deepEqual([error.slug, error.status], ["round-closed", 409]);
  assert.match(error.note, /never be counted/);
  await assert.rejects(reporter.report("a"), /refused your report/);
  assert.deepEqual(await reporter.resume(), []);
  assert.equal(collector.posts.length, 1);
});

test("a refused key or wrong URL leaves the report pending", async () => {
  for (const refusal of [
    () => problem(401, "unauthorized"),
    () => problem(404, "not-found"),
    () => new Response("?", { status: 404 }),
  ]) {
    const collector = await Collector.of({});
    collector.faults = [refusal];
    const reporter = collector.reporter();
    await assert.rejects(reporter.report("a"));
    assert.equal((await reporter.report("a")).state, "accepted");
    assert.equal(new Set(collector.posts.map(({ body }) => body)).size, 1);
  }
});

test("a response for another round does not settle the report", async () => {
  for (const body of [
    { round: "R1", accepted: 2, duplicate: false },
    { round: "R2", accepted: 1, duplicate: false },
    { round: "R1", accepted: 1 },
    [],
    "no",
  ]) {
    const collector = await Collector.of({});
    collector.faults = [() => Response.json(body, { status: 202 })];
    const reporter = collector.reporter();
    await assert.rejects(reporter.report("a"), InvalidAnswerError);
    assert.equal((await reporter.ledger.entries())[0].state, "pending");
  }
});

test("a redirect is not followed", async () => {
  const collector = await Collector.of({});
  collector.faults = [
    () => new Response(null, { status: 307, headers: { Location: "https://elsewhere.test" } }),
  ];
  await assert.rejects(collector.reporter().report("a"), /redirects/);
});

test("AccessError names what the round needs", async () => {
  const needs = async (fields, options) => {
    const collector = await Collector.of(fields);
    const reporter = collector.reporter(options);
    const error = await failure(reporter.report("a"));
    assert.equal(collector.posts.length, 0);
    assert.deepEqual(await reporter.ledger.entries(), []);
    return error instanceof AccessError ? error.needs : error;
  };
  assert.equal(await needs({ access: "ticket" }, {}), "ticket");
  assert.equal(await needs({ access: "key" }, {}), "key");
  assert.equal(await needs({ access: "key" }, { key: "k", ticket: TICKET }), "key");
  assert.equal(await needs({ access: "open" }, { ticket: TICKET }), null);
  assert.equal(await needs({ access: "riddle" }, {}), null);
});

test("a report changes its ticket only while no try is open", async () => {
  const collector = await Collector.of({ access: "ticket" });
  collector.tickets.add(OTHER);
  const ledger = new Ledger(memoryStore());
  const error = await failure(collector.reporter({ ledger, ticket: TICKET }).report("a"));
  assert.equal(error.slug, "invalid-ticket");
  assert.match(error.note, /another ticket/);
  assert.equal((await collector.reporter({ ledger, ticket: OTHER }).report("a")).state, "accepted");
  assert.equal(new Set(collector.posts.map(({ body }) => body)).size, 1);
});

test("a lost response binds the report to its ticket", async () => {
  const collector = await Collector.of({ access: "ticket" });
  collector.tickets.add(TICKET).add(OTHER);
  collector.faults = [answerLost, requestLost, requestLost];
  const ledger = new Ledger(memoryStore());
  await assert.rejects(collector.reporter({ ledger, ticket: TICKET }).report("a"), UnansweredError);
  assert.equal((await collector.reporter({ ledger, ticket: OTHER }).report("a")).duplicate, true);
  assert.deepEqual([...collector.stored.keys()], [TICKET]);
});

test("an open try survives a later refusal", async () => {
  const collector = await Collector.of({ access: "ticket" });
  const reporter = collector.reporter({ ticket: TICKET });
  collector.faults = [requestLost, requestLost, requestLost];
  await assert.rejects(reporter.report("a"), UnansweredError);
  const error = await failure(reporter.report("a"));
  assert.deepEqual([error.slug, error.inDoubt], ["invalid-ticket", false]);
  assert.match(error.note, /under no other/);
  assert.equal((await reporter.ledger.entries())[0].openTries, 1);
});

test("a refusal after a lost response keeps the ticket", async () => {
  const collector = await Collector.of({ access: "ticket" });
  collector.faults = [requestLost, () => problem(401, "invalid-ticket")];
  const reporter = collector.reporter({ ticket: TICKET });
  const error = await failure(reporter.report("a"));
  assert.match(error.note, /under no other/);
  assert.equal((await reporter.ledger.entries())[0].openTries, 1);
});

test("the key goes in Authorization", async () => {
  const collector = await Collector.of({ access: "key" });
  await collector.reporter({ key: "a report key" }).report("a");
  assert.equal(collector.posts[0].authorization, "Bearer a report key");
});

test("rejects invalid reporter options", () => {
  const ledger = new Ledger(memoryStore());
  const make = (server, options) => () => new Reporter(server, "current", { ledger, ...options });
  const ends = ["a:b@a.test", "a:1/b@a.test", "a.test/?x", "a.test/#x"];
  for (const server of ["", "a.test", "ftp://a.test", ...ends.map((end) => `https://${end}`)])
    assert.throws(make(server), ArgumentError);
  const wrong = [{ maxEpsilon: 0 }, { maxEpsilon: NaN }, { max_epsilon: 0.5 }];
  wrong.push({ maxTotalEpsilon: 1 }, { timeout: 0 }, { ticket: "x" });
  for (const options of [...wrong, ...[" k", "", "é"].map((key) => ({ key }))])
    assert.throws(make("https://a.test", options), ArgumentError);
  assert.throws(
    () => new Ledger(memoryStore(), { maxEpsilon: 1 }),
    /there is no option maxEpsilon/,
  );
  assert.throws(() => new Retries({ tries: 1 }), /there is no option tries/);
  assert.throws(() => new Reporter("https://a.test"), /give a ledger/); // in Node, where no browser keeps one
});
