// Reports one user's value: perturbs it once, stores it in the ledger, and sends it.
import { Calls, validateTicket, serverUrl } from "./calls.js";
import {
  AccessError,
  AlreadyReportedError,
  ArgumentError,
  EpsilonTooHighError,
  InconsistentRoundError,
  InvalidAnswerError,
  RefusedError,
  ServerError,
  UnansweredError,
  UnknownItemError,
  rejectUnknown,
} from "./errors.js";
import { assignedRound, checkAnswers, readForm } from "./forms.js";
import { labelKey } from "./labels.js";
import { Ledger } from "./ledger.js";
import { PROTOCOLS, roundNumber } from "./protocols.js";
import { Retries } from "./retries.js";
import { field, hex, printable, readRound } from "./rounds.js";
import { browserStore } from "./stores.js";
import { below, systemCrypto, wordsFrom } from "./words.js";

/** The default limit of epsilon for one round. */
export const MAX_EPSILON = 2;

const TICKET_PROBLEMS = ["invalid-ticket", "idempotency-key-reused", "forbidden"];
const NUMBER = /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i;

const REFUSED = "the report will never be counted, and its epsilon stays spent";
const PENDING = "the report is written down, and the same one goes out when you report again";
const KEEPS_TICKET =
  "an earlier try under this ticket had no answer and may have been counted, " +
  "so the report goes out under no other";

/**
 * Reports one user's value to a round, or to one round of a form, once.
 *
 *     const receipt = await new Reporter("https://reports.example.org", "lunch").report("soup");
 *
 * `round` is an id, a name, or "current"; or `{ form: "usage" }`, a form's id or name. Of a form the
 * user answers one question: the ticket assigns it, or this device draws it, and the ledger has the
 * draw before the round is fetched. A ledger has one report a form, and the other answers never
 * leave the device. `ledger` is the user's: by default in the browser's database; outside a browser
 * it is required. `maxEpsilon` limits each round. `key` is a report key and `ticket` a ticket, if the
 * round needs one. `timeout` limits the seconds of a request, `retries` is a `Retries`. Throws
 * ArgumentError.
 */
export class Reporter {
  #ledger;
  #options;
  #settings;

  constructor(server, round = "current", options = {}) {
    const {
      ledger,
      maxEpsilon = MAX_EPSILON,
      key = null,
      ticket = null,
      timeout = 30,
      retries = new Retries(),
      fetch = (...request) => globalThis.fetch(...request),
      ...others
    } = options;
    rejectUnknown(others);
    if (!(maxEpsilon > 0)) throw new ArgumentError("maxEpsilon must be above 0");
    if (!(timeout > 0)) throw new ArgumentError("timeout must be above 0");
    if (key !== null && !/^[!-~]([ -~]*[!-~])?$/.test(key)) {
      throw new ArgumentError("a key must be printable ASCII without spaces around it");
    }
    if (!ledger && !globalThis.indexedDB)
      throw new ArgumentError("give a ledger: there is no browser here to keep one");
    this.#ledger = ledger ?? new Ledger(browserStore());
    this.#options = {
      url: serverUrl(server),
      round,
      form: round?.form ?? null,
      maxEpsilon,
      ticket: ticket === null ? null : validateTicket(ticket),
      key,
    };
    this.#settings = { timeout, retries, fetch };
  }

  /** The user's ledger. */
  get ledger() {
    return this.#ledger;
  }

  /** Return the checked form, or null if the reporter is one of a round. */
  async form() {
    const { url, form } = this.#options;
    return form === null ? null : readForm(await this.#calls(url).form(form));
  }

  /** Return the checked parameters of the round; of a form, that of the report, ticket or draw. */
  async round() {
    return this.#roundOf(await this.form());
  }

  /**
   * Report a value: an item's label (always a string) or its index (always a number); in a round
   * for numbers, GRR over the items "-1" and "1", the number itself. For a form it is an object with
   * a value for each question, of which only that of the drawn one is read. Return a receipt.
   *
   * If the ledger has a report without an answer, that one is sent again. Throws, before anything
   * is perturbed, CallerError, LimitError, LedgerError and InconsistentRoundError; RefusedError,
   * UnansweredError and InvalidAnswerError have a `note` of what happens to the report.
   */
  async report(value) {
    const crypto = await systemCrypto();
    const form = await this.form();
    if (form) checkAnswers(form, value);
    const round = await this.#roundOf(form);
    if (form) value = value[round.question];
    const isClosed = form?.rounds.find((each) => each.id === round.id).state === "closed";
    const { entry, isNew } = await this.#claim(round, value, isClosed, crypto);
    const { receipt, error } = await this.#deliver(
      entry,
      this.#options.ticket ?? entry.ticket,
      !isNew,
    );
    if (error) throw error;
    return receipt;
  }

  /** Send each pending report again to its server; return their receipts. */
  async resume() {
    const receipts = [];
    for (const entry of await this.#ledger.pending())
      receipts.push((await this.#deliver(entry, entry.ticket, true)).receipt);
    return receipts;
  }

  #calls(url) {
    const { key } = this.#options;
    return new Calls(url, { ...this.#settings, key: url === this.#options.url ? key : null });
  }

  async #roundOf(form) {
    const crypto = await systemCrypto();
    const id = form ? await this.#draw(form, wordsFrom(crypto)) : this.#options.round;
    const round = await readRound(await this.#calls(this.#options.url).parameters(id), crypto);
    const isDrawn = (each) => each.id === id && each.question === round.question;
    if (form && (round.id !== id || round.form !== form.id || !form.rounds.some(isDrawn)))
      throw new InconsistentRoundError("the form contradicts the round that was drawn");
    return round;
  }

  /**
   * Return the id of the round of a form that the user answers: that of the ledger's report, else
   * that of the ticket, which binds nothing before it reports, else that of this device's draw.
   */
  async #draw({ id, assign, rounds }, words) {
    const { ticket } = this.#options;
    const isAssigned = assign === "ticket" && ticket !== null;
    const assigned = isAssigned ? rounds[assignedRound(ticket, rounds.length)].id : null;
    const entry = (await this.#ledger.entries()).find((each) => each.formId === id);
    if (entry && isAssigned && assigned !== entry.roundId)
      throw new AccessError(
        "this ticket is for another question than the report in the ledger: " +
          "nobody answers two questions of a form",
        "ticket",
      );
    const known = entry?.roundId ?? assigned;
    if (known === null && assign === "ticket")
      throw new AccessError("this form takes tickets alone: give one of its tickets", "ticket");
    const drawn = known ?? (await this.#ledger.draw(id, rounds[below(rounds.length, words)].id));
    if (rounds.some((round) => round.id === drawn)) return drawn;
    throw new InconsistentRoundError("the form lacks the round that was drawn before");
  }

  async #claim(round, value, isClosed, crypto) {
    const { maxEpsilon, ticket, url } = this.#options;
    if (round.epsilon > maxEpsilon) {
      throw new EpsilonTooHighError(
        `the round asks for epsilon ${round.epsilon}, above your limit of ${maxEpsilon}`,
      );
    }
    const words = wordsFrom(crypto);
    const item = itemOf(round, value, words);
    const { entry, isNew } = await this.#ledger.claim({
      round,
      serverUrl: url,
      // 128 random bits: nobody can guess another user's key and send a report under it.
      key: hex(crypto.getRandomValues(new Uint8Array(16))),
      ticket,
      perturb: () => {
        if (isClosed) throw new AccessError("the form is closed", null);
        this.#checkAccess(round, ticket);
        return hex(PROTOCOLS.get(round.protocol).perturb(round, item, words));
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
      throw new AccessError(`this version knows no rounds of access '${printable(access)}'`, null);
    }
  }

  async #deliver(entry, ticket, resent) {
    const sent = ticket === null ? entry : await this.#ledger.beginTry(entry.roundId, ticket);
    const receipt = {
      roundId: sent.roundId,
      roundName: sent.roundName,
      question: sent.question,
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
      if (
        answer.accepted !== 1 ||
        field.text(answer, "round") !== sent.roundId ||
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
      if (
        !(
          error instanceof ServerError ||
          error instanceof RefusedError ||
          error instanceof UnansweredError
        )
      )
        throw error;
      const state = await this.#failed(sent, error);
      return { receipt: { ...receipt, state, duplicate: false, reason: error.message }, error };
    }
  }

  /**
   * Settle a report that the server will never take, leave others pending, and set `error.note`.
   */
  async #failed(entry, error) {
    error.note = PENDING;
    if (!(error instanceof RefusedError)) return "pending";
    if (entry.ticket !== null && TICKET_PROBLEMS.includes(error.slug)) {
      if (!error.inDoubt) await this.#ledger.endTry(entry.roundId);
      const isBound = error.inDoubt || entry.openTries > 1; // one is this try
      const other = entry.formId ? "another ticket for the same question" : "another ticket";
      error.note = isBound ? KEEPS_TICKET : `${PENDING} with ${other}`;
    } else if (isFinal(error)) {
      await this.#ledger.settle(entry.roundId, "refused", error.message);
      error.note = REFUSED;
      return "refused";
    }
    return "pending";
  }
}

/**
 * Tell whether the server states that the round will never take these bytes. A 404 without a known
 * slug means a wrong URL. After a 401 or 403 the user may get a key.
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
    let item = items.indexOf(value);
    if (item < 0) item = items.map(labelKey).indexOf(labelKey(value));
    if (item >= 0) return item;
    throw new UnknownItemError(`the value is not one of the round's ${items.length} items`);
  }
  if (Number.isInteger(value) && value >= 0 && value < items.length) return value;
  throw new UnknownItemError(
    `a value is an item's label, a string, or its index, an integer from 0 to ${items.length - 1}`,
  );
}
