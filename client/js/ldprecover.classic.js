// Made by scripts/classic.js of the modules in src/: change those.
globalThis.LDPRecover = (() => {
"use strict";

const errorsModule = (() => {
// What can go wrong between a user and a round, by who is at fault:
//
//     ClientError
//     ├── CallerError                 you: what was asked for cannot be done
//     │   ├── ArgumentError           an argument, a URL or the page itself does not do
//     │   ├── UnknownItemError        the value is not an item of the round
//     │   ├── UnknownProtocolError    this client does not know the round's protocol
//     │   ├── AccessError             the round wants a key or a ticket, or takes no ticket
//     │   └── AlreadyReportedError    the ledger already holds the round's one report
//     ├── LimitError                  your own privacy limits say no; nothing was sent
//     │   ├── EpsilonTooHighError     the round's epsilon is above your limit for one round
//     │   ├── EpsilonSpentError       all rounds together would be above your total
//     │   └── SecondSeedError         your ticket picks another seed than your first one
//     ├── LedgerError                 this device: the ledger cannot be read or written
//     ├── RefusedError                the server understood and said no; it names its reason
//     ├── ServerError                 the server, or something that answers in its place
//     │   ├── InvalidAnswerError      an answer that does not fit the interface
//     │   └── InconsistentRoundError  parameters of a round that contradict each other
//     └── UnansweredError             the network, or a server that is down: try again later
//
// Messages never hold a user's value: they may end up in logs, and a value must not leave its user.

class ClientError extends Error {
  /** What this means for a report that was written down before, or null. */
  note = null;

  get name() {
    return this.constructor.errorName;
  }

  // A minifier changes the names of classes, and callers may compare these.
  static errorName = "ClientError";
}

class CallerError extends ClientError {
  static errorName = "CallerError";
}

class ArgumentError extends CallerError {
  static errorName = "ArgumentError";
}

/** Throw ArgumentError if there are options beside those known: a misspelt limit would be none. */
function refuseOthers(others) {
  const [name] = Object.keys(others);
  if (name !== undefined) throw new ArgumentError(`there is no option ${name}`);
}

class UnknownItemError extends CallerError {
  static errorName = "UnknownItemError";
}

class UnknownProtocolError extends CallerError {
  static errorName = "UnknownProtocolError";
}

class AccessError extends CallerError {
  static errorName = "AccessError";

  /** `needs` is what the round takes reports with: "key", "ticket", or null for neither. */
  constructor(message, needs) {
    super(message);
    this.needs = needs;
  }
}

class AlreadyReportedError extends CallerError {
  static errorName = "AlreadyReportedError";
}

class LimitError extends ClientError {
  static errorName = "LimitError";
}

class EpsilonTooHighError extends LimitError {
  static errorName = "EpsilonTooHighError";
}

class EpsilonSpentError extends LimitError {
  static errorName = "EpsilonSpentError";
}

class SecondSeedError extends LimitError {
  static errorName = "SecondSeedError";
}

class LedgerError extends ClientError {
  static errorName = "LedgerError";
}

class RefusedError extends ClientError {
  static errorName = "RefusedError";

  /**
   * A problem (RFC 9457): HTTP status, title, detail or null, type, index of the bad report or
   * null. `inDoubt` says that an earlier try was not answered for good, so that it may have been
   * taken.
   */
  constructor({ status, title, detail = null, type = "about:blank", position = null }) {
    const where = position === null ? "" : ` (report ${position})`;
    const why = detail && detail !== title ? `: ${detail}` : "";
    super(`${title}${where}${why}`);
    Object.assign(this, { status, title, detail, type, position, inDoubt: false });
  }

  /** The heading that `type` points to, such as "round-closed"; empty without one. */
  get slug() {
    const at = this.type.lastIndexOf("#");
    return at < 0 ? "" : this.type.slice(at + 1);
  }
}

class ServerError extends ClientError {
  static errorName = "ServerError";
}

class InvalidAnswerError extends ServerError {
  static errorName = "InvalidAnswerError";
}

class InconsistentRoundError extends ServerError {
  static errorName = "InconsistentRoundError";
}

class UnansweredError extends ClientError {
  static errorName = "UnansweredError";

  /**
   * `status` is that of the last answer (408, 429 or 5xx), null if none came; `retryAfter` the
   * seconds the server asked to wait, or null. Sending the same bytes again under the same key is
   * safe.
   */
  constructor(message, status = null, retryAfter = null) {
    super(message);
    Object.assign(this, { status, retryAfter });
  }
}

return { ClientError, CallerError, ArgumentError, refuseOthers, UnknownItemError, UnknownProtocolError, AccessError, AlreadyReportedError, LimitError, EpsilonTooHighError, EpsilonSpentError, SecondSeedError, LedgerError, RefusedError, ServerError, InvalidAnswerError, InconsistentRoundError, UnansweredError };
})();

const ledgerModule = (() => {
// The ledger: what this user has reported, written down before it is sent, and what that has cost.
//
// One entry a round, by the round's random id: the packed report, the key it travels under, and its
// state:
//
//     pending ──► accepted    the server has it
//        └──────► refused     the server will never take it; not sent again
//
// An entry is never removed, so its epsilon stays spent. The user's value is not in it.
//
// A ticket takes the place of the key, so the same report under two tickets could count twice.
// Before a try goes out under a ticket it is written down as open, and no longer so once the server
// has refused that ticket. Only while no try is open may the report go to another ticket.
//
// Where seeds are given, the seed that the first ticket picks is written down before the value is
// perturbed, and is the only one for that round.
const { ArgumentError, ClientError, EpsilonSpentError, InconsistentRoundError, LedgerError, SecondSeedError, refuseOthers } = errorsModule;

const MAX_TOTAL_EPSILON = 4;

const NAME = "ldprecover-ledger";
const FORM = 1;
const DIGITS = 30; // after the point, of epsilons that are added: no double from 0.01 on has more

class Ledger {
  #store;
  #limit;

  /**
   * `maxTotalEpsilon` limits the sum of epsilon over all rounds of the ledger; Infinity lifts it.
   * Throws ArgumentError.
   */
  constructor(store, { maxTotalEpsilon = MAX_TOTAL_EPSILON, ...others } = {}) {
    refuseOthers(others);
    if (![store?.get, store?.set, store?.lock].every((method) => typeof method === "function")) {
      throw new ArgumentError("a store must have get, set and lock");
    }
    if (!(maxTotalEpsilon > 0)) throw new ArgumentError("maxTotalEpsilon must be above 0");
    this.#store = store;
    this.#limit = maxTotalEpsilon;
  }

  /** Return every report, in the order they were made. */
  entries() {
    return this.#transact((book) => Object.values(book.reports));
  }

  /** Return the sum of epsilon over all rounds. */
  spent() {
    return this.#transact((book) => Number(total(book)) / 10 ** DIGITS);
  }

  /** Return the seed that a ticket picked for a round, null for a round without. */
  seed(roundId) {
    return this.#transact((book) => book.seeds[roundId] ?? null);
  }

  /**
   * Return the round's entry, and whether it is new. Only if there is none `perturb` is called, and
   * its report written with the key. Throws EpsilonSpentError, InconsistentRoundError,
   * SecondSeedError and LedgerError.
   */
  claim({ round, serverUrl, key, ticket = null, seed = null, perturb }) {
    return this.#transact(async (book, save) => {
      const found = book.reports[round.id];
      if (!found) this.#checkTotal(book, round.epsilon);
      if (seed !== null && (!found || found.state === "pending"))
        await holdSeed(book, round.id, seed, save);
      if (found) {
        if (found.digest === round.digest) return { entry: found, isNew: false };
        throw new InconsistentRoundError(
          "the round had other parameters when it was first reported to",
        );
      }
      const entry = {
        roundId: round.id,
        roundName: round.name,
        serverUrl,
        digest: round.digest,
        epsilon: round.epsilon,
        key,
        packed: perturb(),
        state: "pending",
        reason: null,
        ticket,
        openTries: 0,
      };
      book.reports[round.id] = entry;
      await save();
      return { entry, isNew: true };
    });
  }

  /**
   * Write down that a try under a ticket goes out; return the entry as it must go out: under
   * another ticket than before only if no try is open.
   */
  beginTry(roundId, ticket) {
    return this.#change(roundId, (entry) => {
      if (entry.openTries === 0) entry.ticket = ticket;
      entry.openTries += 1;
    });
  }

  /** Write down that a try under a ticket was certainly not taken. */
  endTry(roundId) {
    return this.#change(roundId, (entry) => {
      entry.openTries -= 1;
    });
  }

  /** Write down what became of a report: accepted or refused. */
  settle(roundId, state, reason = null) {
    return this.#change(roundId, (entry) => Object.assign(entry, { state, reason }));
  }

  /** Change a pending entry; return it as it then is. */
  #change(roundId, change) {
    return this.#transact(async (book, save) => {
      const entry = book.reports[roundId];
      if (!entry)
        throw new LedgerError("the ledger has lost a report: it was changed by something else");
      if (entry.state === "pending") {
        change(entry);
        await save();
      }
      return entry;
    });
  }

  #checkTotal(book, epsilon) {
    const sum = total(book) + decimal(epsilon);
    if (this.#limit !== Infinity && sum > decimal(this.#limit)) {
      throw new EpsilonSpentError(
        `epsilon ${epsilon} would take the total of this ledger to ${Number(sum) / 10 ** DIGITS}, ` +
          `above its limit of ${this.#limit}`,
      );
    }
  }

  /** Run an act on the book, alone; it must call `save` for what is to last. */
  #transact(act) {
    return this.#guarded(() =>
      this.#store.lock(NAME, async () => {
        const book = read(await this.#guarded(() => this.#store.get(NAME)));
        return act(book, () => this.#save(book));
      }),
    );
  }

  async #save(book) {
    const text = JSON.stringify(book);
    const kept = await this.#guarded(async () => {
      await this.#store.set(NAME, text);
      return this.#store.get(NAME);
    });
    if (kept !== text) throw new LedgerError("the store does not keep what is written to it");
  }

  /** Have what a store throws be a LedgerError. */
  async #guarded(ask) {
    try {
      return await ask();
    } catch (error) {
      if (error instanceof ClientError) throw error;
      throw new LedgerError(`the ledger's store failed: ${error?.message ?? error}`);
    }
  }
}

async function holdSeed(book, roundId, seed, save) {
  const held = book.seeds[roundId];
  if (held === undefined) {
    book.seeds[roundId] = seed;
    await save();
  } else if (held !== seed) {
    throw new SecondSeedError(
      "this ticket picks another seed than your first one for this round, and a value under two " +
        "seeds tells more of it: report with the first ticket, or one that picks the same seed",
    );
  }
}

function read(text) {
  let book = { form: FORM, reports: {}, seeds: {} };
  if (text !== null && text !== undefined) {
    try {
      book = JSON.parse(text);
    } catch {
      book = null;
    }
    const isBook = book?.form === FORM && isTable(book.reports) && isTable(book.seeds);
    if (!isBook) throw new LedgerError("what is kept is not a ledger that this version reads");
  }
  // A round's id is the server's word, and may be "constructor".
  for (const table of [book.reports, book.seeds]) Object.setPrototypeOf(table, null);
  return book;
}

function isTable(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function total(book) {
  return Object.values(book.reports).reduce((sum, entry) => sum + decimal(entry.epsilon), 0n);
}

/**
 * Return a number as it was written, in units of 10^-30: forty times 0.1 is 4, and not a little
 * more.
 */
function decimal(value) {
  const [digits, power = "0"] = String(value).split("e");
  const [whole, fraction = ""] = digits.split(".");
  const places = DIGITS - fraction.length + Number(power);
  return places < 0 ? 0n : BigInt(whole + fraction) * 10n ** BigInt(places);
}

return { MAX_TOTAL_EPSILON, Ledger };
})();

const retriesModule = (() => {
// When to send again, and when to give up: exponential back-off with full jitter, Retry-After
// honoured.
const { ArgumentError, refuseOthers } = errorsModule;

const PERMANENT = new Set([501, 505]);

/** Tell whether an answer says "not now": 408, 429 or 5xx, but what a server can never do. */
function isPassing(status) {
  return status === 408 || status === 429 || (status >= 500 && !PERMANENT.has(status));
}

/**
 * Tell whether a passing answer says that nothing was done: 408, too slowly sent, or 429, too many.
 */
function neverTaken(status) {
  return status === 408 || status === 429;
}

/** Return the seconds that Retry-After asks to wait, null where it is absent or says nothing. */
function retryAfter(headers, now = Date.now()) {
  const value = headers.get("retry-after")?.trim();
  if (!value) return null;
  if (/^[0-9]+$/.test(value)) return Number(value);
  // A date counts from the answer's own, where a page may see that, so that the clock need not be
  // right.
  const seconds = (Date.parse(value) - (Date.parse(headers.get("date") ?? "") || now)) / 1000;
  return Number.isNaN(seconds) ? null : Math.max(0, seconds);
}

/**
 * How persistent to be: at most `attempts` sends, `longest` seconds between two, `total` seconds in
 * all. Before retry i the wait is uniform from 0 to min(longest, base 2^i), after what Retry-After
 * asks for, which counts up to `longest`. `sleep`, `clock` and `draw` are for tests.
 */
class Retries {
  constructor({
    attempts = 8,
    base = 0.5,
    longest = 30,
    total = 120,
    sleep = (seconds) => new Promise((wake) => setTimeout(wake, 1000 * seconds)),
    clock = () => performance.now() / 1000,
    draw = Math.random,
    ...others
  } = {}) {
    refuseOthers(others);
    if (!(Number.isInteger(attempts) && attempts >= 1))
      throw new ArgumentError("attempts must be at least 1");
    for (const [name, seconds] of Object.entries({ base, longest, total })) {
      if (!(seconds >= 0 && seconds < Infinity))
        throw new ArgumentError(`${name} must be a number of seconds, 0 or more`);
    }
    Object.assign(this, { attempts, base, longest, total, sleep, clock, draw });
  }

  /**
   * Return the retries of one request: asked after each failure, whether to send again once the
   * wait is over.
   */
  begin() {
    const start = this.clock();
    let failures = 0;
    return async (asked = null) => {
      const jitter = this.draw() * Math.min(this.longest, this.base * 2 ** failures);
      const delay = Math.min(asked ?? 0, this.longest) + jitter;
      failures += 1;
      if (failures >= this.attempts || this.clock() - start + delay > this.total) return false;
      await this.sleep(delay);
      return true;
    };
  }
}

return { isPassing, neverTaken, retryAfter, Retries };
})();

const hashingModule = (() => {
// OLH's hash, and the public list of seeds that tickets pick from.

const [PRIME2, PRIME3, PRIME4, PRIME5] = [0x85ebca77, 0xc2b2ae3d, 0x27d4eb2f, 0x165667b1];

/**
 * Return xxHash32 of an item as four little-endian bytes; seed, item and hash are 32-bit unsigned.
 */
function hashItem(seed, item) {
  // Of four bytes the hash is one round and the final avalanche.
  let h = (seed + PRIME5 + 4 + Math.imul(item, PRIME3)) | 0;
  h = Math.imul((h << 17) | (h >>> 15), PRIME4);
  h = Math.imul(h ^ (h >>> 15), PRIME2);
  h = Math.imul(h ^ (h >>> 13), PRIME3);
  return (h ^ (h >>> 16)) >>> 0;
}

/**
 * Return (hash * g) >> 32, the bucket of an item under a seed; the product is below 2^48, so a
 * double holds it.
 */
function bucketOf(seed, item, g) {
  return Math.floor((hashItem(seed, item) * g) / 2 ** 32);
}

/**
 * Return the seed that a ticket `id.mac` picks of the first m of the list: place x m >> 64, x the
 * MAC's first 64 bits.
 */
function seedOfTicket(ticket, m) {
  const mac = ticket
    .slice(ticket.indexOf(".") + 1)
    .replace(/-/g, "+")
    .replace(/_/g, "/");
  const bytes = Uint8Array.from(atob(mac), (character) => character.charCodeAt(0));
  const draw = new DataView(bytes.buffer).getBigUint64(0, true);
  return hashItem(0, Number((draw * BigInt(m)) >> 64n));
}

return { hashItem, bucketOf, seedOfTicket };
})();

const thresholdsModule = (() => {
// The integers that uniform 64-bit words are compared with, exactly.
//
// They are rounded to the private side: of all integers each is the last for which the ratio of
// the probabilities of any report under any two items is at most e^epsilon. A double has too few
// digits for that, so numbers here are integers in units of 2^-320. e^epsilon is rounded down, by
// less than 2^-290, which takes every threshold to the private side, if it changes one at all.

const FRACTION = 320n;
const ONE = 1n << FRACTION;
const WORDS = 1n << 64n;

/** Return a double from 2^-200 to 2^200 in units of 2^-320, exactly. */
function exact(x) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, x);
  const bits = view.getBigUint64(0);
  const mantissa = (bits & ((1n << 52n) - 1n)) | (1n << 52n);
  return mantissa << (FRACTION + (bits >> 52n) - 1075n);
}

/** Return e^epsilon rounded down: every term of its Taylor series is. */
function expBelow(epsilon) {
  const x = exact(epsilon);
  let [sum, term] = [ONE, ONE];
  for (let k = 1n; term > 0n; k += 1n) {
    term = (term * x) / (k << FRACTION);
    sum += term;
  }
  return sum;
}

/** Return the largest t with t(k-1)/(2^64-t) <= e^epsilon: below it one of k values is kept. */
function keepThreshold(epsilon, k) {
  const e = expBelow(epsilon);
  return (WORDS * e) / (e + BigInt(k - 1) * ONE);
}

/** Return the smallest t with (2^64-t)/t <= e^epsilon: below it a bit is turned over. */
function flipThreshold(epsilon) {
  const sum = expBelow(epsilon) + ONE;
  return (WORDS * ONE + sum - 1n) / sum;
}

/**
 * Return the largest t with t(d-k)/((2^64-t)k) <= e^epsilon: below it a set of k of d items holds
 * the user's.
 */
function holdThreshold(epsilon, d, k) {
  const e = BigInt(k) * expBelow(epsilon);
  return (WORDS * e) / (e + BigInt(d - k) * ONE);
}

return { keepThreshold, flipThreshold, holdThreshold };
})();

const wordsModule = (() => {
// Uniform 64-bit words, and exactly uniform integers made of them.
const { ArgumentError } = errorsModule;

const AT_ONCE = 65536; // bytes that crypto.getRandomValues fills in one call

/**
 * Return the platform's cryptography. Throws ArgumentError where there is none: browsers keep it
 * from pages that somebody could change on their way.
 */
async function systemCrypto() {
  // Node 18 has it as a module alone.
  const found = globalThis.crypto ?? (await import("node:crypto")).webcrypto;
  if (!found?.subtle) {
    throw new ArgumentError("a page that reports must come over https, or from this device");
  }
  return found;
}

/** Return n -> n independent uniform 64-bit words from a cryptographic source. */
function wordsFrom(crypto) {
  return (n) => {
    const words = new BigUint64Array(n);
    const bytes = new Uint8Array(words.buffer);
    for (let at = 0; at < bytes.length; at += AT_ONCE) {
      crypto.getRandomValues(bytes.subarray(at, at + AT_ONCE));
    }
    return words;
  };
}

/** Return an exactly uniform integer from 0 to k - 1; words in the biased tail are drawn again. */
function below(k, words) {
  const range = BigInt(k);
  const limit = ((1n << 64n) / range) * range;
  for (;;) {
    const [word] = words(1);
    if (word < limit) return Number(word % range);
  }
}

return { systemCrypto, wordsFrom, below };
})();

const protocolsModule = (() => {
// The frequency oracles: their probabilities, their thresholds, and how an item becomes a report.
//
// Each takes the parameters of a round: epsilon, the number of items d, the protocol's own
// parameter and, to perturb, the thresholds. `perturb` takes also an item's index, a source of
// words and, where seeds are given, the ticket's seed; it returns the packed report. Words are
// taken in the order that tests/vectors/README.md says, so that the same words make the same report
// in every language.
const { bucketOf } = hashingModule;
const { flipThreshold, holdThreshold, keepThreshold } = thresholdsModule;
const { below } = wordsModule;

const ALL = (1n << 64n) - 1n;
const PREFIX = 8; // leading bits of the threshold that are decided for 64 numbers at once

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
  // The smallest t with ((2^64-t)/t)^2 <= e^epsilon; half a double is a double.
  thresholds: ({ epsilon }) => ({ turn_below: flipThreshold(epsilon / 2) }),
  perturb(round, item, words) {
    const turned = round.thresholds.turn_below;
    const row = unaryRow(round.d, turned, words);
    const [word] = words(1);
    return setBit(row, item, word >= turned);
  },
};

const olh = {
  own: "hash_range",
  ownRange: () => [2, 65536],
  seeds: [64, 4096],
  chances({ epsilon, own }) {
    const e = Math.exp(epsilon);
    return [e / (e + own - 1), 1 / own];
  },
  thresholds: ({ epsilon, own }) => ({ keep_below: keepThreshold(epsilon, own) }),
  perturb(round, item, words, given = null) {
    const seed = given ?? Number(words(1)[0] >> 32n);
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
    // Changing the bit that is the row's lowest pairs the columns of the two kinds.
    if (isOdd(row & column) !== odd) column ^= row & -row;
    return u4(column);
  },
};

/** The protocols by the name that a round states. */
const PROTOCOLS = new Map(Object.entries({ grr, oue, olh, sue, ss, hr }));

/**
 * Return the item of a round for numbers, GRR over "-1" and "1", that x becomes: 1 with probability
 * (1+x)/2.
 */
function roundNumber(x, words) {
  const [word] = words(1);
  return Number(word >> 11n) * 2 ** -53 < (1 + x) / 2 ? 1 : 0;
}

function u4(value) {
  const report = new DataView(new ArrayBuffer(4));
  report.setUint32(0, value, true);
  return new Uint8Array(report.buffer);
}

function isOdd(bits) {
  let odd = false;
  for (let left = bits; left; left &= left - 1) odd = !odd;
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
 * Each bit is 1[a uniform 64-bit number < threshold], 64 numbers a word at once, drawn from their
 * highest bit on. A number is open while its bits equal the threshold's, and below at the first
 * difference where the threshold has the one. What is open after the prefix is decided by one word
 * a number.
 */
function unaryRow(d, threshold, words) {
  const lanes = Math.ceil(d / 64);
  const drawn = words(PREFIX * lanes);
  const ones = new BigUint64Array(lanes);
  const open = new BigUint64Array(lanes).fill(ALL);
  drawn.forEach((bits, i) => {
    const lane = i % lanes;
    const place = Math.floor(i / lanes);
    // Bits are fair: a drawn one stands for a number's zero.
    const found = open[lane] & bits;
    if ((threshold >> BigInt(63 - place)) & 1n) {
      ones[lane] |= found;
      open[lane] ^= found;
    } else {
      open[lane] = found;
    }
  });
  const rest = (threshold << BigInt(PREFIX)) & ALL;
  for (let at = openOf(open); at.length; at = openOf(open)) {
    const more = words(at.length);
    at.forEach((lane, i) => {
      const lowest = open[lane] & -open[lane];
      if (more[i] < rest) ones[lane] |= lowest;
      open[lane] ^= lowest;
    });
  }
  return rowOf(ones, d);
}

function openOf(open) {
  return Array.from(open.keys()).filter((lane) => open[lane] !== 0n);
}

function rowOf(ones, d) {
  const view = new DataView(new ArrayBuffer(8 * ones.length));
  ones.forEach((bits, lane) => view.setBigUint64(8 * lane, bits, true));
  const row = new Uint8Array(view.buffer, 0, Math.ceil(d / 8));
  if (d % 8) row[row.length - 1] &= (1 << (d % 8)) - 1;
  return row.slice();
}

/**
 * Return the packed row of `count` of the d - 1 items other than this one, each set equally likely.
 *
 * Those with the lowest of random keys; where the last of them and the next have equal keys all are
 * drawn again.
 */
function otherItems(d, item, count, words) {
  for (;;) {
    const drawn = words(Math.ceil(d / 2));
    const keys = Uint32Array.from({ length: d }, (_, i) =>
      Number((drawn[i >> 1] >> (i & 1 ? 32n : 0n)) & 0xffffffffn),
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

return { PROTOCOLS, roundNumber };
})();

const roundsModule = (() => {
// A round's parameters as a server states them: read, and checked by what follows from them.
//
// Nothing here trusts the server. What is missing or of another type is an InvalidAnswerError, what
// contradicts the rest an InconsistentRoundError.
const { InconsistentRoundError, InvalidAnswerError, UnknownProtocolError } = errorsModule;
const { PROTOCOLS } = protocolsModule;

const TOLERANCE = 1e-9; // of p and q: another language's exp may differ in the last bits
const MAX_ITEMS = 100_000;
const REFERENCE = /^[A-Za-z0-9][A-Za-z0-9._~-]{0,127}$/; // what a round may be named by in a path
const OWN = ["hash_range", "subset_size"];

/** Tell whether a text can name a round in a path. */
function isReference(text) {
  return typeof text === "string" && REFERENCE.test(text);
}

/** Return a stranger's text fit to be shown: no control characters, not endless. */
function plain(text) {
  const shown = text.slice(0, 300).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, "\ufffd");
  return text.length > 300 ? `${shown}\u2026` : shown;
}

/**
 * Return a field of an answer that must be text, a finite number, or a safe integer of at least
 * `least`.
 */
const field = {
  text(body, name) {
    if (typeof body[name] === "string" && body[name]) return body[name];
    throw new InvalidAnswerError(`${name} must be text`);
  },
  number(body, name) {
    if (Number.isFinite(body[name])) return body[name];
    throw new InvalidAnswerError(`${name} must be a finite number`);
  },
  integer(body, name, least) {
    if (Number.isSafeInteger(body[name]) && body[name] >= least) return body[name];
    throw new InvalidAnswerError(`${name} must be an integer of at least ${least}`);
  },
};

/**
 * Return the round that GET /rounds/{id}/parameters states. Throws ServerError and
 * UnknownProtocolError.
 */
async function readRound(body, crypto) {
  const name = field.text(body, "protocol");
  const protocol = PROTOCOLS.get(name);
  if (!protocol)
    throw new UnknownProtocolError(`protocol '${plain(name)}' is not known to this client`);
  const items = labels(body);
  const round = {
    id: field.text(body, "id"),
    name: field.text(body, "name"),
    protocol: name,
    epsilon: field.number(body, "epsilon"),
    items,
    d: items.length,
    own: ownParameter(body, protocol, name),
    givenSeeds: body.given_seeds == null ? null : field.integer(body, "given_seeds", 0),
    canaries: canaries(body, items.length),
    quarantine: body.quarantine ?? false,
    access: field.text({ access: "open", ...body }, "access"),
    digest: field.text(body, "digest"),
  };
  if (!isReference(round.id))
    throw new InvalidAnswerError("id must be letters, digits and . _ ~ -");
  if (typeof round.quarantine !== "boolean")
    throw new InvalidAnswerError("quarantine must be true or false");
  checkRanges(round, protocol);
  round.thresholds = protocol.thresholds(round);
  checkChances(body, round, protocol);
  if (round.digest !== (await digestOf(round, crypto))) {
    throw new InconsistentRoundError("the round's digest is not that of its parameters");
  }
  return Object.freeze(round);
}

/** Return SHA-256 in hex over what matters of a round: parameters.json in tests/vectors pins it. */
async function digestOf(round, crypto) {
  const parts = [text(`${round.protocol}\0`), f8(round.epsilon), u4(round.own ?? 0, round.d)];
  for (const label of round.items) {
    const utf8 = text(label);
    parts.push(u4(utf8.length), utf8);
  }
  if (round.canaries.length)
    parts.push(text("canaries\0"), u4(round.canaries.length, ...round.canaries));
  if (round.quarantine) parts.push(text("quarantine\0"));
  if (round.givenSeeds !== null) parts.push(text("given_seeds\0"), u4(round.givenSeeds));
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return hex(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)));
}

/** Return bytes as hexadecimal digits. */
function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function labels(body) {
  const items = body.items;
  if (!Array.isArray(items) || !items.every((label) => typeof label === "string")) {
    throw new InvalidAnswerError("items must be an array of strings");
  }
  if (items.length < 2 || items.length > MAX_ITEMS)
    inconsistent(`${items.length} items, not 2 to ${MAX_ITEMS}`);
  if (new Set(items).size !== items.length) inconsistent("items that are not distinct");
  // A lone surrogate would be hashed as another character.
  if (items.some((label) => !label || /\p{Cs}/u.test(label)))
    inconsistent("an item that is no text");
  return items;
}

function ownParameter(body, protocol, name) {
  for (const other of OWN) {
    if (other !== protocol.own && body[other] != null)
      inconsistent(`a ${other}, which ${name} has not`);
  }
  // A client never computes it: both sides take what the round states.
  return protocol.own ? field.integer(body, protocol.own, 0) : null;
}

function canaries(body, d) {
  const found = body.canaries ?? [];
  if (
    !Array.isArray(found) ||
    !found.every((item) => Number.isInteger(item) && item >= 0 && item < d)
  ) {
    throw new InvalidAnswerError("canaries must be an array of item indices");
  }
  return found;
}

function checkRanges({ protocol: name, epsilon, d, own, givenSeeds: m, access }, protocol) {
  if (!(epsilon >= 0.01 && epsilon <= 10)) inconsistent(`epsilon ${epsilon}, not 0.01 to 10`);
  if (protocol.own) {
    const [low, high] = protocol.ownRange({ d });
    if (own < low || own > high) inconsistent(`${protocol.own} ${own}, not ${low} to ${high}`);
  }
  if (m === null) return;
  if (!protocol.seeds) inconsistent(`given seeds, which ${name} has not`);
  const [low, high] = protocol.seeds;
  if (m < low || m > high) inconsistent(`${m} given seeds, not ${low} to ${high}`);
  if (access !== "ticket") {
    throw new InconsistentRoundError(
      "the round gives seeds, which tickets pick, and takes reports without",
    );
  }
}

function checkChances(body, round, protocol) {
  const right = protocol.chances(round);
  ["p", "q"].forEach((name, i) => {
    const stated = field.number(body, name);
    if (!(Math.abs(stated - right[i]) <= TOLERANCE * right[i])) {
      throw new InconsistentRoundError(
        `the round states ${name} = ${stated}, but ${round.protocol} with its parameters has ${right[i]}`,
      );
    }
  });
  const stated = body.thresholds ?? {};
  if (typeof stated !== "object") throw new InvalidAnswerError("thresholds must be an object");
  for (const [name, threshold] of Object.entries(round.thresholds)) {
    // There is one that keeps epsilon and differs from p or q by no more than rounding.
    if (name in stated && stated[name] !== String(threshold)) {
      throw new InconsistentRoundError(
        `the round states another threshold ${name} than ${threshold}`,
      );
    }
  }
}

function inconsistent(what) {
  throw new InconsistentRoundError(`no round can have ${what}`);
}

function text(characters) {
  return new TextEncoder().encode(characters);
}

function f8(value) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value, true);
  return new Uint8Array(view.buffer);
}

function u4(...values) {
  const view = new DataView(new ArrayBuffer(4 * values.length));
  values.forEach((value, i) => view.setUint32(4 * i, value, true));
  return new Uint8Array(view.buffer);
}

return { isReference, plain, field, readRound, digestOf, hex };
})();

const callsModule = (() => {
// Calling a server: the one module that fetches.
const { ArgumentError, InvalidAnswerError, RefusedError, UnansweredError } = errorsModule;
const { isPassing, neverTaken, retryAfter } = retriesModule;
const { isReference, plain } = roundsModule;

const MAX_ANSWER_BYTES = 64 * 2 ** 20; // far more than 100,000 items with long labels take
const MEDIA_TYPE = "application/vnd.ldprecover.reports";
const TICKET = /^[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{22}$/;
const LOCAL = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** Return a server's URL without a slash at its end. Throws ArgumentError for one that is none. */
function serverUrl(url) {
  let parsed;
  try {
    parsed = new URL(url);
  } catch {
    throw new ArgumentError("the server's URL cannot be read");
  }
  if (!/^https?:$/.test(parsed.protocol))
    throw new ArgumentError("the server's URL must begin with http:// or https://");
  if (parsed.username || parsed.password) {
    throw new ArgumentError(
      "the server's URL must hold no user or password: it is written down with each report",
    );
  }
  if (parsed.search || parsed.hash)
    throw new ArgumentError("the server's URL must have no query and no fragment");
  return parsed.href.replace(/\/+$/, "");
}

/** Return a ticket. Throws ArgumentError for what cannot be one. */
function checkedTicket(ticket) {
  if (typeof ticket === "string" && TICKET.test(ticket)) return ticket;
  throw new ArgumentError(
    "a ticket must be 22 characters, a dot, and 22 more, from A-Z a-z 0-9 _ -",
  );
}

/**
 * The calls that a reporter makes of one server; `timeout` is the seconds that a whole request may
 * take.
 */
class Calls {
  constructor(url, { key = null, timeout, retries, fetch }) {
    Object.assign(this, { url, key, timeout, retries, fetch });
  }

  /** Return what GET /rounds/{id}/parameters answers. */
  parameters(reference) {
    if (!isReference(reference))
      throw new ArgumentError('a round must be named by its id, its name or "current"');
    return this.#call("GET", `/rounds/${reference}/parameters`, 200, {});
  }

  /** POST a packed report under its key, or under its ticket. */
  submit(roundId, packed, key, ticket) {
    const headers = { "Content-Type": MEDIA_TYPE };
    if (ticket === null) {
      headers["Idempotency-Key"] = key;
    } else {
      this.#warnIfReadable("ticket");
      headers.Authorization = `Ticket ${checkedTicket(ticket)}`;
    }
    return this.#call("POST", `/rounds/${roundId}/reports`, 202, headers, packed);
  }

  async #call(method, path, status, headers, body) {
    const call = `${method} ${path}`;
    if (this.key !== null) {
      this.#warnIfReadable("key");
      headers = { Authorization: `Bearer ${this.key}`, ...headers };
    }
    const again = this.retries.begin();
    let inDoubt = false;
    for (;;) {
      const answer = await this.#send(method, path, headers, body);
      const isOver = answer.status !== undefined && !isPassing(answer.status);
      if (isOver) return take(answer, status, call, inDoubt);
      // A page is not told whether a request that failed had arrived.
      inDoubt ||= !neverTaken(answer.status);
      const problem = answer.status === undefined ? null : problemIn(answer);
      const asked = answer.headers ? retryAfter(answer.headers) : null;
      // An operator has to start the server anew: no retry is as patient as that.
      if (problem?.slug === "plugin-not-loaded" || !(await again(asked))) {
        const what =
          answer.status === undefined ? "does not answer" : `answered ${answer.status} to`;
        const why = problem?.message ?? answer.reason ?? "no reason given";
        throw new UnansweredError(
          `${this.url} ${what} (${call}): ${why}`,
          answer.status ?? null,
          asked,
        );
      }
    }
  }

  /** Return the answer with its whole body, or only the reason why there is none. */
  async #send(method, path, headers, body) {
    const end = new AbortController();
    const timer = setTimeout(() => end.abort(), 1000 * this.timeout);
    try {
      const response = await this.fetch(this.url + path, {
        method,
        headers: { Accept: "application/json, application/problem+json", ...headers },
        body,
        signal: end.signal,
        // Neither reports nor keys go where the user did not send them; nothing ties reports
        // together.
        redirect: "manual",
        credentials: "omit",
        referrerPolicy: "no-referrer",
      });
      const { status, type } = response;
      if (type === "opaqueredirect" || (status >= 300 && status < 400 && status !== 304)) {
        throw new InvalidAnswerError(
          `${method} ${path}: the server redirects; give the URL it redirects to`,
        );
      }
      return { status, headers: response.headers, text: await textOf(response) };
    } catch (error) {
      if (error instanceof InvalidAnswerError) throw error;
      return {
        reason: end.signal.aborted
          ? `no whole answer in ${this.timeout} seconds`
          : String(error?.message),
      };
    } finally {
      clearTimeout(timer);
    }
  }

  #warnIfReadable(secret) {
    const { protocol, hostname, host } = new URL(this.url);
    if (protocol === "http:" && !LOCAL.test(hostname)) {
      console.warn(
        `the ${secret} goes to ${host} over plain http, where it can be read on the way: use https`,
      );
    }
  }
}

async function textOf(response) {
  const pieces = new TextDecoder();
  let [text, size] = ["", 0];
  const reader = response.body?.getReader();
  for (let piece = await reader?.read(); piece && !piece.done; piece = await reader.read()) {
    size += piece.value.length;
    if (size > MAX_ANSWER_BYTES) {
      await reader.cancel();
      throw new InvalidAnswerError(`the answer is larger than ${MAX_ANSWER_BYTES} bytes`);
    }
    text += pieces.decode(piece.value, { stream: true });
  }
  return text + pieces.decode();
}

/** Return what a final answer says: its JSON object. Throws RefusedError and InvalidAnswerError. */
function take(answer, status, call, inDoubt) {
  if (answer.status === status) {
    const body = objectIn(answer);
    if (body) return body;
    throw new InvalidAnswerError(`${call}: the answer must be a JSON object`);
  }
  const problem = answer.status >= 400 ? problemIn(answer) : null;
  if (problem) throw Object.assign(problem, { inDoubt });
  throw new InvalidAnswerError(
    `${call}: status ${answer.status} without a problem, so this is not an LDPRecover server`,
  );
}

function problemIn(answer) {
  const kind = (answer.headers.get("content-type") ?? "").split(";")[0].trim().toLowerCase();
  const body = kind === "application/problem+json" ? objectIn(answer) : null;
  if (!body) return null;
  const text = (name) =>
    typeof body[name] === "string" && body[name] ? plain(body[name]) : undefined;
  return new RefusedError({
    status: answer.status,
    title: text("title") ?? `the server refused (${answer.status})`,
    detail: text("detail"),
    type: text("type"),
    position: Number.isInteger(body.position) ? body.position : null,
  });
}

function objectIn(answer) {
  try {
    const body = JSON.parse(answer.text);
    return typeof body === "object" && body !== null && !Array.isArray(body) ? body : null;
  } catch {
    return null;
  }
}

return { serverUrl, checkedTicket, Calls };
})();

const storesModule = (() => {
// Where a ledger is kept: texts by name, and a lock that nobody else holds meanwhile.
//
// A store has get(name) -> text or null, set(name, text), and lock(name, act), which runs act
// alone. Any of them may return a promise. What set has taken must outlive the page or process.
const { LedgerError } = errorsModule;

const DATABASE = "ldprecover";
const TABLE = "ledgers";

/**
 * Keep the ledger in the browser's database, on the disk before a report is sent: the default of
 * pages. It is of one origin and one browser.
 */
function browserStore() {
  const open = () =>
    settled("the browser's database cannot be opened", (done, fail) => {
      const request = globalThis.indexedDB.open(DATABASE, 1);
      request.onupgradeneeded = () => request.result.createObjectStore(TABLE);
      request.onsuccess = () => done(request.result);
      request.onerror = () => fail(request.error);
      request.onblocked = () => fail(new Error("another page keeps it"));
    });
  const transact = async (mode, ask) => {
    const database = await open();
    try {
      return await settled("the browser's database failed", (done, fail) => {
        // "strict": written through to the disk, not only handed to the system.
        const transaction = database.transaction(TABLE, mode, { durability: "strict" });
        const request = ask(transaction.objectStore(TABLE));
        transaction.oncomplete = () => done(request.result);
        transaction.onabort = () => fail(transaction.error ?? new Error("it gave up"));
      });
    } finally {
      database.close();
    }
  };
  return {
    get: async (name) => (await transact("readonly", (table) => table.get(name))) ?? null,
    set: (name, text) => transact("readwrite", (table) => table.put(text, name)),
    lock: webLock,
  };
}

/**
 * Keep the ledger in localStorage. Browsers write that to the disk when it suits them, often
 * seconds later: a browser that dies before then has forgotten a report that may have been sent.
 */
function localStore() {
  return {
    get: (name) => globalThis.localStorage.getItem(name),
    set: (name, text) => globalThis.localStorage.setItem(name, text),
    lock: webLock,
  };
}

/**
 * Keep the ledger in memory: for tests and demonstrations, since the next page may report again.
 */
function memoryStore() {
  const texts = new Map();
  return {
    get: (name) => texts.get(name) ?? null,
    set: (name, text) => void texts.set(name, text),
    lock: queue(),
  };
}

/**
 * Return a lock of this process: calls run one after another, those of one name and all others
 * alike.
 */
function queue() {
  let last = Promise.resolve();
  return (name, act) => {
    const turn = last.then(act);
    last = turn.catch(() => undefined);
    return turn;
  };
}

function webLock(name, act) {
  const locks = globalThis.navigator?.locks;
  if (!locks)
    throw new LedgerError("this browser has no Web Locks, so that two pages could report at once");
  return locks.request(name, act);
}

async function settled(what, start) {
  try {
    return await new Promise(start);
  } catch (error) {
    throw new LedgerError(`${what}: ${error?.message ?? error}`);
  }
}

return { browserStore, localStore, memoryStore, queue };
})();

const reporterModule = (() => {
// One user's report of one value: perturbed once, written down, sent until it is answered.
const { Calls, checkedTicket, serverUrl } = callsModule;
const { AccessError, AlreadyReportedError, ArgumentError, EpsilonTooHighError, InconsistentRoundError, InvalidAnswerError, RefusedError, ServerError, UnansweredError, UnknownItemError, refuseOthers } = errorsModule;
const { seedOfTicket } = hashingModule;
const { Ledger } = ledgerModule;
const { PROTOCOLS, roundNumber } = protocolsModule;
const { Retries } = retriesModule;
const { field, hex, plain, readRound } = roundsModule;
const { browserStore } = storesModule;
const { systemCrypto, wordsFrom } = wordsModule;

/** The default limit of epsilon for one round. */
const MAX_EPSILON = 2;

const OF_TICKETS = ["invalid-ticket", "idempotency-key-reused"];
const NAME = /^[a-z0-9][a-z0-9._-]{0,63}$/;
const NUMBER = /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i;

const REFUSED = "the report will never be counted, and its epsilon stays spent";
const PENDING = "the report is written down, and the same one goes out when you report again";
const KEEPS_TICKET =
  "an earlier try under this ticket had no answer and may have been counted, " +
  "so the report goes out under no other";

/**
 * Reports one user's value to a round, once.
 *
 * `round` is an id, a name, or "current". `ledger` is the user's: by default in the browser's own
 * database; elsewhere it must be given. `maxEpsilon` limits each round. `key` is a report key and
 * `ticket` a ticket, where the round wants one. `timeout` is the seconds that a request may take,
 * `retries` a `Retries`. With `byName` the report is sent to the round's name, and written down
 * under it: behind a proxy to several deployments the round has another id on each. Throws
 * ArgumentError.
 */
class Reporter {
  #ledger;
  #options;
  #settings;

  constructor(server, round = "current", options = {}) {
    const {
      ledger,
      maxEpsilon = MAX_EPSILON,
      key = null,
      ticket = null,
      byName = false,
      timeout = 30,
      retries = new Retries(),
      fetch = (...request) => globalThis.fetch(...request),
      ...others
    } = options;
    refuseOthers(others);
    if (!(maxEpsilon > 0)) throw new ArgumentError("maxEpsilon must be above 0");
    if (!(timeout > 0)) throw new ArgumentError("timeout must be above 0");
    if (key !== null && !/^[!-~]([ -~]*[!-~])?$/.test(key)) {
      throw new ArgumentError("a key must be printable ASCII without spaces around it");
    }
    if (byName && (round === "current" || !NAME.test(round)))
      throw new ArgumentError("byName needs the round's name, neither an id nor 'current'");
    if (byName && ticket !== null) {
      throw new ArgumentError(
        "byName takes no ticket: each is good on the one deployment that minted it",
      );
    }
    if (!ledger && !globalThis.indexedDB)
      throw new ArgumentError("give a ledger: there is no browser here to keep one");
    this.#ledger = ledger ?? new Ledger(browserStore());
    this.#options = {
      url: serverUrl(server),
      round,
      byName,
      maxEpsilon,
      ticket: ticket === null ? null : checkedTicket(ticket),
      key,
    };
    this.#settings = { timeout, retries, fetch };
  }

  /** The user's ledger. */
  get ledger() {
    return this.#ledger;
  }

  /** Return the round as its server states it, checked. */
  async round() {
    const body = await this.#calls(this.#options.url).parameters(this.#options.round);
    return readRound(body, await systemCrypto());
  }

  /**
   * Report a value: an item's label (always a string) or its index (always a number); in a round
   * for numbers, GRR over the items "-1" and "1", the number itself. Return a receipt.
   *
   * If the round's report was made before and not answered, that one is sent again. Throws, having
   * perturbed nothing, CallerError, LimitError, LedgerError and InconsistentRoundError;
   * RefusedError, UnansweredError and InvalidAnswerError with a `note` of what became of the
   * report.
   */
  async report(value) {
    const crypto = await systemCrypto();
    const round = await this.round();
    const { entry, isNew } = await this.#enter(round, value, crypto);
    const { receipt, error } = await this.#deliver(
      entry,
      this.#options.ticket ?? entry.ticket,
      !isNew,
    );
    if (error) throw error;
    return receipt;
  }

  /** Send every pending report again, each to the server it was made for; return their receipts. */
  async resume() {
    const receipts = [];
    for (const entry of await this.#ledger.entries()) {
      if (entry.state === "pending")
        receipts.push((await this.#deliver(entry, entry.ticket, true)).receipt);
    }
    return receipts;
  }

  #calls(url) {
    const { key } = this.#options;
    return new Calls(url, { ...this.#settings, key: url === this.#options.url ? key : null });
  }

  async #enter(round, value, crypto) {
    const { byName, maxEpsilon, ticket, url } = this.#options;
    if (byName && round.name !== this.#options.round) {
      throw new InconsistentRoundError(
        `asked for the round ${this.#options.round}, the server states another`,
      );
    }
    if (round.epsilon > maxEpsilon) {
      throw new EpsilonTooHighError(
        `the round asks for epsilon ${round.epsilon}, above your limit of ${maxEpsilon}`,
      );
    }
    const words = wordsFrom(crypto);
    const item = itemOf(round, value, words);
    if (round.canaries.includes(item)) {
      throw new UnknownItemError(
        "the value is a canary of the round, an item that nobody holds; nothing is sent",
      );
    }
    const seed =
      round.givenSeeds !== null && ticket !== null ? seedOfTicket(ticket, round.givenSeeds) : null;
    const { entry, isNew } = await this.#ledger.claim({
      round: byName ? { ...round, id: round.name } : round,
      serverUrl: url,
      // 128 random bits: nobody can guess, and so claim, another user's key.
      key: hex(crypto.getRandomValues(new Uint8Array(16))),
      ticket,
      seed,
      perturb: () => {
        this.#checkAccess(round, ticket);
        return hex(PROTOCOLS.get(round.protocol).perturb(round, item, words, seed));
      },
    });
    if (isNew) return { entry, isNew };
    if (entry.state === "pending" && entry.serverUrl !== url) {
      throw new InconsistentRoundError(`the report to this round was made for ${entry.serverUrl}`);
    }
    if (entry.state === "accepted") {
      throw new AlreadyReportedError(
        "this round has your report; a second would cost epsilon once more",
      );
    }
    if (entry.state === "refused") {
      throw new AlreadyReportedError(
        `the server refused your report to this round for good: ${entry.reason}`,
      );
    }
    this.#checkAccess(round, ticket ?? entry.ticket);
    return { entry, isNew };
  }

  #checkAccess({ access }, ticket) {
    if (access === "ticket") {
      if (ticket === null)
        throw new AccessError(
          "this round takes reports with tickets alone: give one of its tickets",
          "ticket",
        );
    } else if (access === "key") {
      if (this.#options.key === null || this.#options.ticket !== null) {
        throw new AccessError(
          "this round takes reports with a report key alone: give a report key, and no ticket",
          "key",
        );
      }
    } else if (access === "open") {
      if (this.#options.ticket !== null)
        throw new AccessError("this round takes no tickets: report without one", null);
    } else {
      throw new AccessError(`this version knows no rounds of access '${plain(access)}'`, null);
    }
  }

  async #deliver(entry, ticket, resent) {
    const sent = ticket === null ? entry : await this.#ledger.beginTry(entry.roundId, ticket);
    const receipt = {
      roundId: sent.roundId,
      roundName: sent.roundName,
      epsilon: sent.epsilon,
      state: "pending",
      resent,
    };
    try {
      const packed = Uint8Array.from(sent.packed.match(/../g), (digits) => parseInt(digits, 16));
      const answer = await this.#calls(sent.serverUrl).submit(
        sent.roundId,
        packed,
        sent.key,
        sent.ticket,
      );
      const byName = sent.roundId === sent.roundName; // on each deployment the round has another id
      if (
        answer.accepted !== 1 ||
        (field.text(answer, "round") !== sent.roundId && !byName) ||
        typeof answer.duplicate !== "boolean"
      ) {
        throw new InvalidAnswerError(
          "the server answers for other reports than the one it was sent",
        );
      }
      await this.#ledger.settle(sent.roundId, "accepted");
      return {
        receipt: { ...receipt, state: "accepted", duplicate: answer.duplicate, reason: null },
      };
    } catch (error) {
      if (!(
        error instanceof ServerError ||
        error instanceof RefusedError ||
        error instanceof UnansweredError
      ))
        throw error;
      const state = await this.#failed(sent, error);
      return { receipt: { ...receipt, state, duplicate: false, reason: error.message }, error };
    }
  }

  /**
   * Settle what the server will never take, leave all else pending; note on the error which it is.
   */
  async #failed(entry, error) {
    error.note = PENDING;
    if (!(error instanceof RefusedError)) return "pending";
    if (entry.ticket !== null && OF_TICKETS.includes(error.slug)) {
      if (!error.inDoubt) await this.#ledger.endTry(entry.roundId);
      const isBound = error.inDoubt || entry.openTries > 1; // the first is this one
      const same =
        (await this.#ledger.seed(entry.roundId)) === null ? "" : " that picks the same seed";
      error.note = isBound ? KEEPS_TICKET : `${PENDING} with another ticket${same}`;
    } else if (isFinal(error)) {
      await this.#ledger.settle(entry.roundId, "refused", error.message);
      error.note = REFUSED;
      return "refused";
    }
    return "pending";
  }
}

/**
 * Tell whether the round, by its server's own word, will never take these bytes. A 404 for the path
 * is not that word, but a wrong URL's; and a key may come for a 401 or 403.
 */
function isFinal({ status, slug }) {
  return [409, 410, 422].includes(status) || (status === 404 && !["", "not-found"].includes(slug));
}

/** Return the index of a value: a string is always a label, a number always an index. */
function itemOf(round, value, words) {
  const { items } = round;
  if (round.protocol === "grr" && items.length === 2 && items[0] === "-1" && items[1] === "1") {
    const x = typeof value === "string" && NUMBER.test(value) ? Number(value) : value;
    if (typeof x === "number" && x >= -1 && x <= 1) return roundNumber(x, words);
    throw new UnknownItemError("in this round a value is a number from -1 to 1");
  }
  if (typeof value === "string") {
    const item = items.indexOf(value);
    if (item >= 0) return item;
    throw new UnknownItemError(`the value is not one of the round's ${items.length} items`);
  }
  if (Number.isInteger(value) && value >= 0 && value < items.length) return value;
  throw new UnknownItemError(
    `a value is an item's label, a string, or its index, an integer from 0 to ${items.length - 1}`,
  );
}

return { MAX_EPSILON, Reporter };
})();

const { AccessError, AlreadyReportedError, ArgumentError, CallerError, ClientError, EpsilonSpentError, EpsilonTooHighError, InconsistentRoundError, InvalidAnswerError, LedgerError, LimitError, RefusedError, SecondSeedError, ServerError, UnansweredError, UnknownItemError, UnknownProtocolError } = errorsModule;
const { Ledger, MAX_TOTAL_EPSILON } = ledgerModule;
const { MAX_EPSILON, Reporter } = reporterModule;
const { Retries } = retriesModule;
const { browserStore, localStore, memoryStore } = storesModule;
return Object.freeze({ AccessError, AlreadyReportedError, ArgumentError, CallerError, ClientError, EpsilonSpentError, EpsilonTooHighError, InconsistentRoundError, InvalidAnswerError, LedgerError, LimitError, RefusedError, SecondSeedError, ServerError, UnansweredError, UnknownItemError, UnknownProtocolError, Ledger, MAX_TOTAL_EPSILON, MAX_EPSILON, Reporter, Retries, browserStore, localStore, memoryStore });
})();
