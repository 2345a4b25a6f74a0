// What is sent again, when, and what is not.
import assert from "node:assert/strict";
import { test } from "node:test";

import { ArgumentError, InvalidAnswerError, Retries } from "../ldprecover.js";
import { RefusedError, UnansweredError } from "../ldprecover.js";
import { retryAfter } from "../src/retries.js";
import { Collector, failure, problem } from "./helpers.js";

/** Return retries whose clock is their sleep, and the list of their waits. */
function counted(options = {}) {
  const waits = [];
  let now = 0;
  const sleep = async (seconds) => {
    waits.push(seconds);
    now += seconds;
  };
  return [new Retries({ sleep, clock: () => now, draw: () => 0.5, ...options }), waits];
}

test("waits double up to `longest` and end after `attempts`", async () => {
  const [retries, waits] = counted({ attempts: 6, longest: 3 });
  const again = retries.begin();
  while (await again());
  assert.deepEqual(waits, [0.25, 0.5, 1, 1.5, 1.5]);
});

test("retries end after `total` seconds", async () => {
  const [retries, waits] = counted({ total: 1 });
  const again = retries.begin();
  while (await again());
  assert.deepEqual(waits, [0.25, 0.5]);
});

test("Retry-After adds to the jitter, up to `longest`", async () => {
  const collector = await Collector.of({});
  collector.faults = [
    () => problem(503, "busy", { "Retry-After": "4" }),
    () => problem(429, "rate-limited", { "Retry-After": "900" }),
  ];
  const [retries, waits] = counted();
  assert.equal((await collector.reporter({ retries }).report("a")).state, "accepted");
  assert.deepEqual(waits, [4.25, 30.5]);
});

test("a Retry-After date counts from the response's date", () => {
  const headers = (fields) => new Headers(fields);
  const until = "Wed, 21 Oct 2015 07:28:30 GMT";
  assert.equal(
    retryAfter(headers({ "retry-after": until, date: "Wed, 21 Oct 2015 07:28:00 GMT" })),
    30,
  );
  assert.equal(retryAfter(headers({ "retry-after": until }), Date.parse(until) - 5000), 5);
  assert.equal(retryAfter(headers({ "retry-after": until }), Date.parse(until) + 5000), 0);
  assert.equal(retryAfter(headers({ "retry-after": "soon" })), null);
  assert.equal(retryAfter(headers({})), null);
});

test("a transient failure is retried", async () => {
  for (const status of [408, 429, 500, 502, 503, 504, 507]) {
    const collector = await Collector.of({});
    collector.faults = [() => problem(status, "x"), () => new Response("<html>", { status })];
    assert.equal((await collector.reporter().report("a")).state, "accepted");
    assert.equal(new Set(collector.posts.map(({ key, body }) => key + body)).size, 1);
  }
});

test("a final response is not retried", async () => {
  for (const status of [400, 403, 413, 501, 505]) {
    const collector = await Collector.of({});
    collector.faults = [() => problem(status, "x")];
    await assert.rejects(collector.reporter().report("a"), RefusedError);
    assert.equal(collector.posts.length, 1);
  }
});

test("plugin-not-loaded is not retried", async () => {
  const collector = await Collector.of({});
  collector.faults = [() => problem(503, "plugin-not-loaded")];
  await assert.rejects(collector.reporter().report("a"), UnansweredError);
  assert.equal(collector.posts.length, 1);
});

test("a problem's detail does not repeat its title", () => {
  const title = "The round is closed";
  const messageOf = (detail) => new RefusedError({ status: 409, title, detail }).message;
  assert.equal(messageOf("the round is closed; nothing is stored"), `${title}; nothing is stored`);
  assert.equal(messageOf("the round is closed"), title);
  assert.equal(messageOf("the round is closedown"), `${title}: the round is closedown`);
  assert.equal(messageOf(null), title);
});

test("UnansweredError has the last status and Retry-After", async () => {
  const collector = await Collector.of({});
  collector.faults = new Array(3).fill(() => problem(503, "busy", { "Retry-After": "7" }));
  const [retries] = counted({ attempts: 3 });
  const error = await failure(collector.reporter({ retries }).report("a"));
  assert.ok(error instanceof UnansweredError);
  assert.deepEqual([error.status, error.retryAfter], [503, 7]);
  assert.match(error.message, /busy/);
});

test("a late response times out", async () => {
  const collector = await Collector.of({});
  const never = (url, { signal }) =>
    new Promise((_, fail) =>
      signal.addEventListener("abort", () => fail(signal.reason), { once: true }),
    );
  const retries = new Retries({ attempts: 1 });
  await assert.rejects(
    collector.reporter({ fetch: never, timeout: 0.01, retries }).report("a"),
    /no whole answer in 0.01 seconds/,
  );
});

test("an endless response is rejected", async () => {
  const collector = await Collector.of({});
  const piece = new Uint8Array(2 ** 20);
  const endless = async () =>
    new Response(new ReadableStream({ pull: (stream) => stream.enqueue(piece) }));
  await assert.rejects(collector.reporter({ fetch: endless }).round(), /larger than/);
});

test("another kind of server is an InvalidAnswerError", async () => {
  const collector = await Collector.of({});
  for (const answer of [
    new Response("<html>"),
    new Response("x", { status: 404 }),
    Response.json([1]),
  ]) {
    await assert.rejects(
      collector.reporter({ fetch: async () => answer }).round(),
      InvalidAnswerError,
    );
  }
});

test("server text is printable and shortened", async () => {
  const collector = await Collector.of({});
  const body = JSON.stringify({ title: `a\u001b[2J${"x".repeat(1000)}`, detail: 7, type: [] });
  const answer = new Response(body, {
    status: 400,
    headers: { "Content-Type": "application/problem+json; charset=utf-8" },
  });
  const error = await failure(collector.reporter({ fetch: async () => answer }).round());
  assert.ok(error instanceof RefusedError);
  assert.ok(error.message.length < 310);
  assert.doesNotMatch(error.message, /\u001b/);
  assert.deepEqual([error.type, error.slug], ["about:blank", ""]);
});

test("requests carry no cookie or referrer and follow no redirect", async () => {
  const collector = await Collector.of({});
  const seen = [];
  const fetch = (url, request) => {
    seen.push(request);
    return collector.fetch(url, request);
  };
  await collector.reporter({ fetch }).report("a");
  assert.equal(seen.length, 2);
  for (const { credentials, redirect, referrerPolicy } of seen) {
    assert.deepEqual([credentials, redirect, referrerPolicy], ["omit", "manual", "no-referrer"]);
  }
});

test("warns of a ticket over plain http", async (context) => {
  const warned = context.mock.method(console, "warn", () => undefined);
  const ticket = `${"A".repeat(22)}.${"A".repeat(22)}`;
  for (const [url, times] of [
    ["http://127.0.0.1:8000", 0],
    ["http://[::1]:8000", 0],
    ["https://a.test", 0],
    ["http://a.test", 1],
  ]) {
    const collector = await Collector.of({ access: "ticket" });
    collector.url = url;
    collector.tickets.add(ticket);
    await collector.reporter({ ticket: `${ticket}\r` }).report("a");
    assert.equal(warned.mock.callCount(), times);
  }
});

test("rejects invalid retry policies", () => {
  const wrong = [{ attempts: 0 }, { attempts: 1.5 }, { base: -1 }, { longest: Infinity }];
  for (const options of [...wrong, { total: "x" }])
    assert.throws(() => new Retries(options), ArgumentError);
});
