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
import {
  ArgumentError,
  ClientError,
  EpsilonSpentError,
  InconsistentRoundError,
  LedgerError,
  SecondSeedError,
  refuseOthers,
} from "./errors.js";

export const MAX_TOTAL_EPSILON = 4;

const NAME = "ldprecover-ledger";
const FORM = 1;
const DIGITS = 30; // after the point, of epsilons that are added: no double from 0.01 on has more

export class Ledger {
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
