// A program that answers a series: when it asks, what it sends, and what it never sends twice.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Ledger, Reporter, UnknownItemError, Usage, memoryStore } from "../ldprecover.js";
import { hex } from "../src/rounds.js";
import { problem, statedRound } from "./helpers.js";

const DAY = 86_400_000;
const [SYSTEM, EDITOR] = ["Which system?", "Which editor?"];
const FORM = {
  epsilon: 0.5,
  questions: [SYSTEM, EDITOR].map((question) => ({ question, items: ["a", "b", "c"] })),
};
const ANSWERS = { [SYSTEM]: "a", [EDITOR]: "b" };
const server = "https://collector.test";

delete process.env.CI;
delete process.env.DO_NOT_TRACK;

/** A server with a series, a clock, and the ledger of one person. */
class World {
  now = 1e12;
  number = 0;
  rounds = {};
  asked = [];
  posts = [];
  stored = new Map();
  store = memoryStore();
  /** Answers a submission in place of the server. */
  fault = null;

  static async open(fields) {
    const world = new World();
    await world.next(fields);
    return world;
  }

  async next(fields = {}) {
    Object.values(this.rounds).forEach((round) => (round.state = "closed"));
    this.number += 1;
    const form = `F${this.number}`;
    for (const question of ["Which shell?", EDITOR, SYSTEM]) {
      const id = `${form}-${question[6]}`;
      const common = { id, question, form, epsilon: 0.5, state: "open", items: ["c", "b", "a"] };
      this.rounds[id] = await statedRound({ ...common, ...fields });
    }
  }

  usage(options = {}) {
    const { form = FORM, ...others } = options;
    const { store, fetch } = this;
    const clock = () => this.now;
    return new Usage(server, "plotter", form, { every: 10, store, fetch, clock, ...others });
  }

  /** Report once a day; return the times at which something was sent. */
  async live(usage, days, answers = ANSWERS) {
    const sent = [];
    for (let i = 0; i < days; i += 1) {
      const before = this.posts.length;
      await usage.report(answers);
      if (this.posts.length > before) sent.push(this.now);
      this.now += DAY;
    }
    return sent;
  }

  fetch = async (url, request) => {
    const [, place, id, call] = url.slice(server.length).split("/");
    this.asked.push(`${this.now} ${place} ${call}`);
    if (place === "series") return Response.json({ current: { form: `F${this.number}` } });
    if (place === "forms") {
      const rounds = Object.values(this.rounds).filter((round) => round.form === id);
      return Response.json({ id, name: id, title: null, assign: "client", rounds });
    }
    if (call === "parameters") return Response.json(this.rounds[id]);
    const { "Idempotency-Key": key } = request.headers;
    this.posts.push(`${key} ${hex(request.body)}`);
    if (this.fault) return this.fault();
    const duplicate = this.stored.has(key);
    if (this.rounds[id].state === "closed" && !duplicate) return problem(409, "round-closed");
    this.stored.set(key, id);
    return Response.json({ round: id, accepted: 1, duplicate }, { status: 202 });
  };
}

test("requests do not depend on values, and one answer a period is sent", async () => {
  const seen = new Set();
  for (const history of ["aaa", "abc", "bca", "ccc"]) {
    const world = await World.open();
    const usage = world.usage({ limit: 1.25 });
    await world.live(usage, 11, { [SYSTEM]: history[0], [EDITOR]: history[0] });
    const phase = Number(world.asked[0].split(" ")[0]);
    for (const value of history) {
      await world.next();
      await world.live(usage, 10, { [SYSTEM]: value, [EDITOR]: value });
    }
    const since = (text) => text.replace(/^\d+/, (time) => (Number(time) - phase) / DAY);
    seen.add(world.asked.map(since).join());
    const ledger = new Ledger(world.store);
    assert.equal(await ledger.spent(), 1);
    assert.equal(world.stored.size, 2);
    assert.match(await usage.log(), /above its limit of 1.25/);
  }
  assert.equal(seen.size, 1);
});

test("a preview draws and charges once", async () => {
  const world = await World.open();
  const usage = world.usage();
  const shown = [];
  for (const value of "abba") shown.push(await usage.preview({ [SYSTEM]: value, [EDITOR]: value }));
  assert.equal(new Set(shown.map(({ packed }) => packed)).size, 1);
  const ledger = new Ledger(world.store);
  assert.equal(await ledger.spent(), 0.5);
  assert.deepEqual(await new Reporter(server, "x", { ledger, fetch: world.fetch }).resume(), []);
  await world.live(usage, 11);
  assert.deepEqual(world.posts, [`${shown[0].key} ${shown[0].packed}`]);
});

test("off keeps the phase and deletes the answer", async () => {
  const world = await World.open();
  const usage = world.usage();
  const [phase] = await world.live(usage, 11);
  await world.next();
  assert.ok(await usage.preview(ANSWERS));
  assert.ok(await usage.off());
  const asked = world.asked.length;
  await world.live(world.usage(), 20);
  assert.equal(await usage.preview(ANSWERS), null);
  assert.equal(world.asked.length, asked);
  const entries = await new Ledger(world.store).entries();
  assert.equal(entries.at(-1).packed, "");
  await usage.on();
  await world.next();
  const [time] = await world.live(usage, 12);
  assert.equal((time - phase) % (10 * DAY), 0);
  assert.ok(time > phase + 20 * DAY);
});

test("a hostile server gets one report a period", async () => {
  for (const status of [404, 409, 422, 500, null]) {
    const world = await World.open();
    world.fault = async () => {
      await world.next();
      if (status === null) throw new TypeError("connection reset");
      return problem(status, "any");
    };
    await world.live(world.usage({ limit: 99 }), 41);
    const least = status === 422 ? 4 : 1;
    assert.equal(new Set(world.posts).size, least, `${status}`);
    assert.ok(world.posts.length > 3);
  }
});

test("four pages share one answer, which outlives a crash and its round", async () => {
  const world = await World.open();
  const usages = [1, 2, 3, 4].map(() => world.usage());
  world.fault = () => {
    throw new TypeError("connection reset");
  };
  for (let i = 0; i < 11; i += 1) {
    await Promise.all(usages.map((usage) => usage.report(ANSWERS)));
    world.now += DAY;
  }
  await world.next();
  world.fault = null;
  await Promise.all(usages.map((usage) => usage.report(ANSWERS)));
  assert.equal(new Set(world.posts).size, 1);
  const [entry, ...others] = await new Ledger(world.store).entries();
  assert.deepEqual([entry.formId, entry.state, others.length], ["F2", "accepted", 0]);
  assert.equal(world.rounds[entry.roundId].question, entry.question);
});

test("what does not fit gets no answer", async () => {
  const cases = [
    { items: ["a", "b", "d"] },
    { epsilon: 0.75 },
    { access: "ticket" },
    { question: "What?" },
  ];
  for (const fields of cases) {
    const world = await World.open(fields);
    assert.deepEqual(await world.live(world.usage(), 12), []);
    assert.equal(await world.usage().preview(ANSWERS), null);
    assert.ok(world.asked.length);
  }
  const world = await World.open();
  world.fetch = async () => problem(404, "not-found");
  assert.equal(await world.usage().preview(ANSWERS), null);
});

test("only a wrong answer throws, and the environment silences", async () => {
  const world = await World.open();
  const broken = { ...memoryStore(), set: () => Promise.reject(new Error("no room")) };
  for (const usage of [world.usage(), world.usage({ store: broken })]) {
    const wrong = [{ ...ANSWERS, [SYSTEM]: "d" }, { [SYSTEM]: "a" }, { ...ANSWERS, d: "a" }, "a"];
    for (const answers of [...wrong, null])
      assert.throws(() => usage.report(answers), UnknownItemError);
  }
  const usage = world.usage({ store: broken });
  await world.live(usage, 10);
  assert.equal(await usage.off(), false);
  for (const name of ["DO_NOT_TRACK", "CI"]) {
    process.env[name] = "1";
    await world.live(world.usage(), 10);
    delete process.env[name];
  }
  assert.deepEqual(world.asked, []);
});
