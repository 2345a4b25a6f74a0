// The ledger: a user's reports and the epsilon that they cost, stored before they are sent.
//
// It has one entry a round, by the round's id, and one a form: the packed report, its idempotency
// key, and its state:
//
//     pending ──► accepted    the server has the report
//        └──────► refused     the server will never take it
//
// An entry is never removed, so its epsilon stays spent. It does not contain the user's value.
// `draws` has the round that this device drew for each form whose tickets do not assign it, and
// `schedules` when a program answers each series, with the key of its unsent report.
//
// A ticket replaces the key, so the same report under two tickets could count twice. A try under a
// ticket is recorded as open before it is sent, and no longer open once the server has refused that
// ticket. The report may be sent under another ticket only while no try is open.
import {
  AlreadyReportedError,
  ArgumentError,
  ClientError,
  EpsilonSpentError,
  InconsistentRoundError,
  LedgerError,
  rejectUnknown,
} from "./errors.js";

export const MAX_TOTAL_EPSILON = 4;

const NAME = "ldprecover-ledger";
const FORM = 1;
const DIGITS = 30; // after the decimal point; no double of 0.01 or more has more

export class Ledger {
  #store;
  #limit;

  /**
   * `maxTotalEpsilon` limits the sum of epsilon over all rounds of the ledger; Infinity lifts it.
   * Throws ArgumentError.
   */
  constructor(store, { maxTotalEpsilon = MAX_TOTAL_EPSILON, ...others } = {}) {
    rejectUnknown(others);
    if (![store?.get, store?.set, store?.lock].every((method) => typeof method === "function")) {
      throw new ArgumentError("a store must have get, set and lock");
    }
    if (!(maxTotalEpsilon > 0)) throw new ArgumentError("maxTotalEpsilon must be above 0");
    this.#store = store;
    this.#limit = maxTotalEpsilon;
  }

  /** Return all reports, oldest first. */
  entries() {
    return this.#transact((book) => Object.values(book.reports));
  }

  /** Return the reports without a final answer that no schedule sends, oldest first. */
  pending() {
    return this.#transact((book) => {
      const scheduled = Object.values(book.schedules).map((schedule) => schedule.key);
      const isPending = ({ state, key }) => state === "pending" && !scheduled.includes(key);
      return Object.values(book.reports).filter(isPending);
    });
  }

  /** Return the sum of epsilon over all rounds. */
  spent() {
    return this.#transact((book) => Number(total(book)) / 10 ** DIGITS);
  }

  /**
   * Return the round's entry, and whether it is new. Only without an entry `perturb` is called, and
   * its report stored with the key. Throws AlreadyReportedError if another round of
   * its form has an entry, EpsilonSpentError, InconsistentRoundError and LedgerError.
   */
  claim(report) {
    return this.#transact(async (book, save) => {
      const claimed = this.#claim(book, report);
      if (claimed.isNew) await save();
      return claimed;
    });
  }

  #claim(book, { round, serverUrl, key, ticket = null, perturb }) {
    const known = book.reports[round.id];
    if (known) {
      if (known.digest === round.digest) return { entry: known, isNew: false };
      throw new InconsistentRoundError(
        "the round had other parameters when it was first reported to",
      );
    }
    checkForm(book, round.form);
    this.#checkTotal(book, round.epsilon);
    const entry = {
      roundId: round.id,
      roundName: round.name,
      formId: round.form,
      question: round.question ?? round.title,
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
    return { entry, isNew: true };
  }

  /**
   * Return what `act` returns for the schedule of a series, `first` if it has none, and for the
   * methods of the book, and store what it changes, in one step.
   */
  schedule(first, act) {
    return this.#transact(async (book, save) => {
      const before = JSON.stringify(book);
      const schedule = (book.schedules[first.series] ??= first);
      const entry = (key) => Object.values(book.reports).find((each) => each.key === key);
      const result = act(schedule, {
        entry,
        checkTotal: (epsilon) => this.#checkTotal(book, epsilon),
        claim: (report) => this.#claim(book, report),
        /** Change a report that is pending. */
        change: (key, values) => {
          if (entry(key).state === "pending") Object.assign(entry(key), values);
        },
        /** Move a report to another round. */
        move: (key, round) => {
          if (book.reports[round.id]) throw new AlreadyReportedError("that round has a report");
          checkForm(book, round.form);
          const { roundId, ...moved } = entry(key);
          delete book.reports[roundId];
          const place = { roundId: round.id, roundName: round.name, formId: round.form };
          book.reports[round.id] = { ...moved, ...place };
        },
      });
      if (JSON.stringify(book) !== before) await save();
      return result;
    });
  }

  /** Return the round that was drawn for a form first: this one, if none was before. */
  draw(formId, roundId) {
    return this.#transact(async (book, save) => {
      if (!(formId in book.draws)) {
        book.draws[formId] = roundId;
        await save();
      }
      return book.draws[formId];
    });
  }

  /**
   * Record an open try under a ticket; return the entry as it must be sent: under another ticket
   * than before only if no try is open.
   */
  beginTry(roundId, ticket) {
    return this.#change(roundId, (entry) => {
      if (entry.openTries === 0) entry.ticket = ticket;
      entry.openTries += 1;
    });
  }

  /** Record that the server certainly did not take a try under a ticket. */
  endTry(roundId) {
    return this.#change(roundId, (entry) => {
      entry.openTries -= 1;
    });
  }

  /** Record that a report was accepted or refused. */
  settle(roundId, state, reason = null) {
    return this.#change(roundId, (entry) => Object.assign(entry, { state, reason }));
  }

  /** Change a pending entry; return the new one. */
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

  /** Run an action on the book under the lock. It calls `save` to store the book. */
  #transact(action) {
    return this.#guarded(() =>
      this.#store.lock(NAME, async () => {
        const book = read(await this.#guarded(() => this.#store.get(NAME)));
        return action(book, () => this.#save(book));
      }),
    );
  }

  async #save(book) {
    const text = JSON.stringify(book);
    const stored = await this.#guarded(async () => {
      await this.#store.set(NAME, text);
      return this.#store.get(NAME);
    });
    if (stored !== text) throw new LedgerError("the store does not keep what is written to it");
  }

  /** Run an action, with the errors of a store as LedgerError. */
  async #guarded(action) {
    try {
      return await action();
    } catch (error) {
      if (error instanceof ClientError) throw error;
      throw new LedgerError(`the ledger's store failed: ${error?.message ?? error}`);
    }
  }
}

function read(text) {
  let book = { form: FORM, reports: {}, draws: {}, schedules: {} };
  if (text !== null && text !== undefined) {
    try {
      book = JSON.parse(text);
    } catch {
      book = null;
    }
    if (isTable(book)) {
      book.draws ??= {};
      book.schedules ??= {};
    }
    const tables = [book?.reports, book?.draws, book?.schedules];
    if (book?.form !== FORM || !tables.every(isTable))
      throw new LedgerError("the store has no ledger that this version reads");
  }
  // The server chooses a round's id, which may be "constructor".
  Object.setPrototypeOf(book.reports, null);
  Object.setPrototypeOf(book.draws, null);
  return book;
}

function checkForm(book, form) {
  if (form && Object.values(book.reports).some((each) => each.formId === form))
    throw new AlreadyReportedError("the ledger has a report to another question of this form");
}

function isTable(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function total(book) {
  return Object.values(book.reports).reduce((sum, entry) => sum + decimal(entry.epsilon), 0n);
}

/**
 * Return the decimal digits of a number in units of 10^-30, so that forty times 0.1 is exactly 4.
 */
function decimal(value) {
  const [digits, power = "0"] = String(value).split("e");
  const [whole, fraction = ""] = digits.split(".");
  const places = DIGITS - fraction.length + Number(power);
  return places < 0 ? 0n : BigInt(whole + fraction) * 10n ** BigInt(places);
}
