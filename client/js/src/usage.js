// Usage statistics: a program answers a series of rounds or forms once a period.
import { Calls, serverUrl } from "./calls.js";
import {
  AlreadyReportedError,
  ArgumentError,
  ClientError,
  InvalidAnswerError,
  RefusedError,
  UnknownItemError,
  rejectUnknown,
} from "./errors.js";
import { readForm } from "./forms.js";
import { labelKey } from "./labels.js";
import { Ledger, MAX_TOTAL_EPSILON } from "./ledger.js";
import { PROTOCOLS } from "./protocols.js";
import { Retries } from "./retries.js";
import { hex, isReference, readRound } from "./rounds.js";
import { browserStore } from "./stores.js";
import { below, systemCrypto, wordsFrom } from "./words.js";

const SECOND = 1000; // milliseconds
const DAY = 86_400 * SECOND;
const TIMEOUT = 5; // seconds of a request
const CLOSED = [404, 409, 410]; // status if a round is closed or deleted

/**
 * Reports a program's usage to the open round or form of a series, once in each period.
 *
 *     const form = { epsilon: 1, questions: [{ question: "Which system?", items }] };
 *     const usage = new Usage(url, "plotter", form, { every: 91, limit: 4 });
 *     usage.report({ "Which system?": "Linux" });
 *
 * The first answer is due at a random time of the first period of `every` days, each other one a
 * period later by this device's clock, whatever the answers are. Then one question is drawn, and
 * its value is perturbed and stored before it is sent. A try that fails is repeated a day later
 * with the same bytes, in the open round of the series if that of the first try is closed. Requests
 * are made only for an answer that is due and by `preview`; none after `off`, and none where
 * DO_NOT_TRACK or CI is set, or the browser has Do Not Track or Global Privacy Control.
 *
 * `form` is the form that opened the series, or one question with its `epsilon`. A round or form
 * that lacks one of its questions or items, asks for a larger epsilon (1 by default), or takes
 * tickets or keys gets no answer. `limit` is the largest sum of epsilon over all reports of the
 * ledger in `store`, by default the browser's database. Throws ArgumentError.
 */
export class Usage {
  #url;
  #series;
  #questions;
  #settings;
  #ledger;

  constructor(server, series, form, options = {}) {
    const {
      every = 91,
      limit = MAX_TOTAL_EPSILON,
      store = globalThis.indexedDB && browserStore(),
      fetch = (...request) => globalThis.fetch(...request),
      clock = Date.now,
      ...others
    } = options;
    rejectUnknown(others);
    const { epsilon = 1, questions = [form] } = form;
    this.#url = serverUrl(server);
    this.#series = series;
    this.#questions = new Map(questions.map((each) => [each.question ?? null, each.items]));
    if (!isReference(series)) throw new ArgumentError("a series must be named by its name");
    if (!questions.length || !questions.every(({ items }) => Array.isArray(items)))
      throw new ArgumentError("each question of a form must have items");
    if (!(every > 0 && limit >= epsilon && epsilon > 0))
      throw new ArgumentError("every and epsilon must be above 0, and limit at least epsilon");
    if (!store) throw new ArgumentError("give a store: there is no browser here to keep a ledger");
    const period = Math.ceil((every * DAY) / SECOND) * SECOND;
    this.#settings = { period, epsilon, limit, fetch, clock };
    this.#ledger = new Ledger(store, { maxTotalEpsilon: limit });
  }

  /**
   * Report if an answer is due; return a promise that resolves within seconds, and never fails.
   *
   * `answers` has a label for each question; of a single question it may be the label alone. Throws
   * UnknownItemError for other questions, and for a label that is not in the program's form, due or
   * not; nothing else.
   */
  report(answers) {
    const values = this.#checked(answers);
    return this.#attempt(() => this.#report(values)).then(() => undefined);
  }

  /**
   * Return the answer that is sent next, or null where `log` says why not. It is drawn, and its
   * epsilon spent, once: until it is sent, later answers do not change it. Throws as `report` does.
   */
  preview(answers) {
    const values = this.#checked(answers);
    return this.#attempt(() => this.#answer(values));
  }

  /** Send nothing until `on`, and delete an unsent answer; return whether that is stored. */
  async off() {
    const isStored = await this.#attempt(() =>
      this.#schedule((schedule, book) => {
        const change = { state: "refused", reason: "switched off", packed: "" };
        if (schedule.key) book.change(schedule.key, change);
        return Object.assign(schedule, { key: null, isOff: true });
      }),
    );
    return isStored !== null;
  }

  /** Report again, from the next due time on; return whether that is stored. */
  async on() {
    const isStored = await this.#attempt(() =>
      this.#schedule((schedule) => (schedule.isOff ? this.#postpone(schedule) : schedule)),
    );
    return isStored !== null;
  }

  /** Return the epsilon spent, the day of the next try, and the last outcome with its day. */
  async log() {
    const text = await this.#attempt(async () => {
      const { isOff, nextTry, note } = await this.#schedule((schedule) => ({ ...schedule }));
      const next = isOff || isSilenced() ? "off" : day(nextTry);
      const spent = `${await this.#ledger.spent()} of ${this.#settings.limit}`;
      return `Epsilon spent: ${spent}. Next try: ${next}. Last outcome: ${note}.`;
    });
    return text ?? "The ledger cannot be used.";
  }

  /** Return what `act` returns; null after an error, which becomes the last outcome. */
  async #attempt(act) {
    try {
      return await act();
    } catch (error) {
      const text = `: ${error?.message}`;
      const change = (schedule) => {
        const isNew = !schedule.note.endsWith(text) && !schedule.isOff && !isSilenced();
        if (isNew) schedule.note = day(this.#settings.clock()) + text;
      };
      await this.#schedule(change).catch(() => undefined);
      return null;
    }
  }

  async #report(values) {
    if (isSilenced()) return;
    const now = this.#settings.clock();
    const isDue = await this.#schedule((schedule) => {
      if (schedule.isOff || now < schedule.nextTry) return false;
      // Other pages wait as long, and so does this one after a crash.
      schedule.nextTry = now + DAY;
      return true;
    });
    if (!isDue) return;
    const { key, question, digest } = await this.#answer(values);
    if (!(await this.#submit(key))) {
      const round = (await this.#rounds()).get(question);
      const isSame = round?.digest === digest;
      await this.#schedule((_, book) => {
        if (isSame) book.move(key, round);
        else book.change(key, { state: "refused", reason: "the series has changed" });
      });
      if (isSame) await this.#submit(key);
    }
    await this.#schedule((schedule, book) => {
      const { state, reason } = book.entry(key);
      if (state === "pending" || schedule.key !== key) return;
      const note = `${day(this.#settings.clock())}: ${reason ?? state}`;
      Object.assign(this.#postpone(schedule), { key: null, note });
    });
  }

  /** Return the unsent answer; draw one first if all are sent. */
  async #answer(values) {
    const before = await this.#schedule(({ key, due }, book) => {
      if (key === null) book.checkTotal(this.#settings.epsilon);
      return { due, entry: key && book.entry(key) };
    });
    if (before.entry) return before.entry;
    const rounds = await this.#rounds();
    const crypto = await systemCrypto();
    const words = wordsFrom(crypto);
    return this.#schedule((schedule, book) => {
      if (schedule.isOff || schedule.due !== before.due)
        throw new ClientError("switched off or answered meanwhile");
      if (schedule.key === null) {
        const question = [...this.#questions.keys()][below(this.#questions.size, words)];
        const round = rounds.get(question);
        const item = indexOf(round.items, values.get(question));
        const { perturb } = PROTOCOLS.get(round.protocol);
        const { entry, isNew } = book.claim({
          round,
          serverUrl: this.#url,
          key: hex(crypto.getRandomValues(new Uint8Array(16))),
          perturb: () => hex(perturb(round, item, words)),
        });
        if (!isNew) throw new AlreadyReportedError("this round has your report");
        schedule.key = entry.key;
      }
      return book.entry(schedule.key);
    });
  }

  /** Send an answer and settle it; return false if its round is closed or deleted. */
  async #submit(key) {
    const { roundId, packed } = await this.#schedule((_, book) => book.entry(key));
    const bytes = Uint8Array.from(packed.match(/../g) ?? [], (digits) => parseInt(digits, 16));
    let outcome = { state: "accepted" };
    try {
      const answer = await this.#calls().submit(roundId, bytes, key, null);
      if (answer.accepted !== 1 || answer.round !== roundId)
        throw new InvalidAnswerError("the server answers for another report");
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error;
      if (CLOSED.includes(error.status)) return false;
      outcome = { state: "refused", reason: error.message };
    }
    await this.#schedule((_, book) => book.change(key, outcome));
    return true;
  }

  /** Return the open round of each question. Throws ClientError where none fits. */
  async #rounds() {
    const calls = this.#calls();
    const { current } = await calls.series(this.#series);
    let ids = Object.values(current ?? {});
    if (current?.form) {
      const form = readForm(await calls.form(current.form));
      ids = form.rounds.filter((each) => this.#questions.has(each.question)).map(({ id }) => id);
    }
    const crypto = await systemCrypto();
    const read = async (id) => readRound(await calls.parameters(id), crypto);
    const rounds = await Promise.all(ids.map(read));
    const byQuestion = new Map(rounds.map((each) => [each.question ?? each.title, each]));
    const fits = ([question, items]) => {
      const round = byQuestion.get(question);
      return (
        round?.access === "open" &&
        round.epsilon <= this.#settings.epsilon &&
        items.every((label) => indexOf(round.items, label) >= 0)
      );
    };
    if (![...this.#questions].every(fits))
      throw new ClientError("nothing that fits this program is open");
    return byQuestion;
  }

  /** Return calls that send each request once, and none after `off`. */
  #calls() {
    const fetch = async (...request) => {
      const isOff = await this.#schedule((schedule) => schedule.isOff);
      if (isOff || isSilenced()) throw new ClientError("switched off");
      return this.#settings.fetch(...request);
    };
    const retries = new Retries({ attempts: 1 });
    return new Calls(this.#url, { timeout: TIMEOUT, retries, fetch });
  }

  /** Set the next due time after now; the phase stays. */
  #postpone(schedule) {
    const { clock, period } = this.#settings;
    schedule.due += (Math.floor((clock() - schedule.due) / period) + 1) * period;
    return Object.assign(schedule, { nextTry: schedule.due, isOff: false });
  }

  async #schedule(act) {
    const { clock, period } = this.#settings;
    const wait = SECOND * below(period / SECOND, wordsFrom(await systemCrypto()));
    const due = clock() + wait;
    const series = `${this.#url}/series/${this.#series}`;
    const first = { series, due, nextTry: due, key: null, isOff: false, note: "none" };
    return this.#ledger.schedule(first, act);
  }

  /** Return the answers by question. Throws UnknownItemError. */
  #checked(answers) {
    const questions = [...this.#questions.keys()];
    const isTable = typeof answers === "object" && answers !== null;
    const values = new Map(isTable ? Object.entries(answers) : [[questions[0], answers]]);
    const isItem = (each) => indexOf(this.#questions.get(each), values.get(each)) >= 0;
    if (values.size === questions.length && questions.every(isItem)) return values;
    // No question is named: it may be a value.
    throw new UnknownItemError("give a label of the form for each of its questions alone");
  }
}

/** Return the index of a label, or of one that looks the same, -1 without one. */
function indexOf(items, label) {
  if (typeof label !== "string") return -1;
  const index = items.indexOf(label);
  return index >= 0 ? index : items.map(labelKey).indexOf(labelKey(label));
}

/** Tell whether the environment or the browser silences this program. */
function isSilenced() {
  const { env = {} } = globalThis.process ?? {};
  const { doNotTrack, globalPrivacyControl } = globalThis.navigator ?? {};
  const isSet = (name) => !["", "0", "false"].includes((env[name] ?? "").toLowerCase());
  return (
    isSet("DO_NOT_TRACK") || isSet("CI") || doNotTrack === "1" || globalPrivacyControl === true
  );
}

function day(milliseconds) {
  return new Date(milliseconds).toISOString().slice(0, 10);
}
