// Shared by the tests: vectors, fixed words, and a server in memory.
import { readFileSync } from "node:fs";

import { Ledger, Reporter, Retries, memoryStore } from "../ldprecover.js";
import { PROTOCOLS } from "../src/protocols.js";
import { digestOf, hex } from "../src/rounds.js";
import { systemCrypto } from "../src/words.js";

const VECTORS = new URL("../../../tests/vectors/", import.meta.url);

/** Return the cases of a vector file. */
export function cases(name, key = "cases") {
  return JSON.parse(readFileSync(new URL(name, VECTORS), "utf8"))[key];
}

/** Return the parameters for `PROTOCOLS` of a vector's case. */
export function parametersOf(fields) {
  const { protocol, epsilon = 1, domain_size: d, hash_range, subset_size } = fields;
  const round = { protocol, epsilon, d, own: hash_range ?? subset_size ?? null };
  return { ...round, thresholds: PROTOCOLS.get(protocol).thresholds(round) };
}

/** Return a source of fixed words, and a function that counts the remaining ones. */
export function fixedWords(words) {
  const rest = words.map(BigInt);
  const take = (n) => {
    if (n > rest.length) throw new Error("there are too few words");
    return BigUint64Array.from(rest.splice(0, n));
  };
  return [take, () => rest.length];
}

/**
 * Return the consistent parameters of a round; `fields` replace some before the digest is made.
 */
export async function statedRound(fields = {}) {
  const named = { id: "R1", name: "letters", protocol: "grr", epsilon: 1, access: "open" };
  const body = {
    ...named,
    items: ["a", "b", "c", "d"],
    hash_range: null,
    subset_size: null,
    ...fields,
  };
  const { protocol, epsilon, items, practice } = body;
  const own = body.hash_range ?? body.subset_size;
  const round = { protocol, epsilon, items, practice, d: items.length, own };
  const [p, q] = PROTOCOLS.get(protocol).chances(round);
  const values = Object.entries(PROTOCOLS.get(protocol).thresholds(round));
  const thresholds = Object.fromEntries(values.map(([name, value]) => [name, String(value)]));
  const digest = await digestOf(round, await systemCrypto());
  return { ...body, p, q, thresholds, digest, ...changesAfter(fields) };
}

function changesAfter(fields) {
  const names = ["p", "q", "thresholds", "digest"].filter((name) => name in fields);
  return Object.fromEntries(names.map((name) => [name, fields[name]]));
}

export function problem(status, slug, headers = {}) {
  const [type, title] = [`/docs/errors#${slug}`, slug.replaceAll("-", " ")];
  const body = JSON.stringify({ type, title, status, detail: "because" });
  const all = { "Content-Type": "application/problem+json", ...headers };
  return new Response(body, { status, headers: all });
}

/** Return the error of a promise that fails. */
export const failure = (promise) => promise.catch((error) => error);

/**
 * A server in memory, which counts each key and ticket once. Each of `faults` handles one of the
 * next submissions: it is called with `send`, which stores the submission.
 */
export class Collector {
  url = "https://collector.test";
  round;
  form;
  rounds = {};
  stored = new Map();
  tickets = new Set();
  posts = [];
  faults = [];

  static async of(fields) {
    const collector = new Collector();
    collector.round = await statedRound(fields);
    return collector;
  }

  /** Return a server with a form of rounds R0, R1, …, which ask Q0, Q1, …. */
  static async ofForm(assign, k) {
    const collector = new Collector();
    const access = assign === "ticket" ? "ticket" : "open";
    for (let i = 0; i < k; i += 1) {
      const fields = { id: `R${i}`, question: `Q${i}`, form: "F1", state: "open", access };
      collector.rounds[`R${i}`] = await statedRound(fields);
    }
    const rounds = Object.values(collector.rounds);
    collector.form = { id: "F1", name: "usage", title: null, assign, rounds };
    return collector;
  }

  fetch = async (url, request) => {
    const path = url.slice(this.url.length);
    if (path.startsWith("/forms/")) return Response.json(this.form);
    const [id, call] = path.split("/").slice(2);
    if (call === "parameters") return Response.json(this.rounds[id] ?? this.round);
    const { "Idempotency-Key": key, Authorization: authorization } = request.headers;
    this.posts.push({ url, key, authorization, body: hex(request.body) });
    const send = () => this.#take(this.posts.at(-1));
    const fault = this.faults.shift();
    return fault ? fault(send) : send();
  };

  #take({ key, authorization = "", body }) {
    const ticket = /^Ticket (.*)$/.exec(authorization)?.[1];
    if (ticket && !this.tickets.has(ticket)) return problem(401, "invalid-ticket");
    const name = ticket ?? key;
    const duplicate = this.stored.has(name);
    if (duplicate && this.stored.get(name) !== body) return problem(422, "idempotency-key-reused");
    this.stored.set(name, body);
    return Response.json(
      { round: this.posts.at(-1).url.split("/").at(-2), accepted: 1, duplicate },
      { status: 202 },
    );
  }

  /** Return a reporter that does not wait between its tries. */
  reporter({ url = this.url, ...options } = {}) {
    const retries = new Retries({ attempts: 3, base: 0, longest: 0 });
    return new Reporter(url, this.form ? { form: "usage" } : "letters", {
      ledger: new Ledger(memoryStore()),
      fetch: this.fetch,
      retries,
      ...options,
    });
  }
}

/** A fault: the server takes the request, and its response is lost. */
export const answerLost = (send) => {
  send();
  throw new TypeError("connection reset");
};

/** A fault: the request is lost. */
export const requestLost = () => {
  throw new TypeError("connection refused");
};
