/** A client for browsers and Node: perturbs one user's value, stores the report, and sends it. */

/** The default limit of epsilon for one round. */
export const MAX_EPSILON: 2;
/** The default limit of epsilon over all rounds of one ledger. */
export const MAX_TOTAL_EPSILON: 4;

/** Stores texts by name. A text that was set must survive the page or process. */
export interface Store {
  get(name: string): string | null | undefined | Promise<string | null | undefined>;
  set(name: string, text: string): unknown;
  /** Runs `act` under the lock of this name; returns its result. */
  lock<T>(name: string, act: () => Promise<T>): Promise<T>;
}

/** The browser's database, flushed to the disk: the default of pages. */
export function browserStore(): Store;
/** localStorage, whose last seconds a browser crash may lose. */
export function localStore(): Store;
/** Memory, for tests and demonstrations. */
export function memoryStore(): Store;

/** One report in the ledger. It is sent under its ticket if it has one, else under its key. */
export interface Entry {
  readonly roundId: string;
  readonly roundName: string;
  /** The form of the round, or null. A ledger has one report a form. */
  readonly formId: string | null;
  /** The round's question, else its title; null for neither. */
  readonly question: string | null;
  readonly serverUrl: string;
  readonly digest: string;
  readonly epsilon: number;
  readonly key: string;
  /** The packed report in hexadecimal. */
  readonly packed: string;
  readonly state: "pending" | "accepted" | "refused";
  readonly reason: string | null;
  readonly ticket: string | null;
  /** Tries under the ticket that the server may have taken. */
  readonly openTries: number;
}

/** A user's reports, stored before they are sent, and the epsilon that they cost. */
export class Ledger {
  /**
   * `maxTotalEpsilon` limits the sum of epsilon over all rounds; Infinity lifts it. Throws
   * ArgumentError.
   */
  constructor(store: Store, options?: { maxTotalEpsilon?: number });
  /** All reports, oldest first. */
  entries(): Promise<readonly Entry[]>;
  /** The sum of epsilon over all rounds. */
  spent(): Promise<number>;
}

/**
 * At most `attempts` sends, `longest` seconds between two, `total` seconds in all. Throws
 * ArgumentError.
 */
export class Retries {
  constructor(options?: {
    attempts?: number;
    base?: number;
    longest?: number;
    total?: number;
    /** Waits for a number of seconds. */
    sleep?: (seconds: number) => Promise<unknown>;
    /** The time in seconds. */
    clock?: () => number;
    /** A uniform number from 0 up to 1. */
    draw?: () => number;
  });
}

/** The checked parameters of a round. */
export interface Round {
  readonly id: string;
  readonly name: string;
  readonly protocol: "grr" | "oue" | "olh" | "sue" | "ss" | "hr" | "llh";
  readonly epsilon: number;
  readonly items: readonly string[];
  /** The number of items. */
  readonly d: number;
  /** The hash range of olh, the subset size of ss, null of the others. */
  readonly own: number | null;
  /** Whether the round may be answered over plain http. */
  readonly practice: boolean;
  /** The id of the form, or null. */
  readonly form: string | null;
  readonly access: string;
  readonly digest: string;
  /** The texts that the survey shows; null for none. */
  readonly question: string | null;
  readonly title: string | null;
  readonly thanks: string | null;
  /** The language of these texts and the items, a BCP 47 tag; null for unknown. */
  readonly language: string | null;
  readonly thresholds: Readonly<Record<string, bigint>>;
}

/** A checked form: rounds of which each person answers one. */
export interface Form {
  readonly id: string;
  readonly name: string;
  readonly title: string | null;
  /** Who draws the round: the ticket, or the client. */
  readonly assign: "ticket" | "client";
  /** The questions are distinct. */
  readonly rounds: readonly {
    readonly id: string;
    readonly question: string;
    readonly language: string | null;
    readonly state: string;
  }[];
}

/** The result of reporting: stored and counted, not answered yet, or refused for good. */
export interface Receipt {
  readonly roundId: string;
  readonly roundName: string;
  /** The round's question, else its title; null for neither. */
  readonly question: string | null;
  readonly epsilon: number;
  readonly state: "accepted" | "pending" | "refused";
  /** An earlier call or page made the report, and its bytes were sent again. */
  readonly resent: boolean;
  /** The server had it already. */
  readonly duplicate: boolean;
  /** Why it is not accepted. */
  readonly reason: string | null;
}

export interface ReporterOptions {
  /** The user's ledger; by default in the browser's database. Required outside a browser. */
  ledger?: Ledger;
  /** Limits each round; default MAX_EPSILON. */
  maxEpsilon?: number;
  /** A report key, if the round needs one. */
  key?: string | null;
  /** A ticket, if the round needs one. */
  ticket?: string | null;
  /** Limit of a request in seconds; default 30. */
  timeout?: number;
  retries?: Retries;
  /** Replaces the platform's fetch. */
  fetch?: typeof globalThis.fetch;
}

/** Reports one user's value to a round, or to one round of a form, once. */
export class Reporter {
  /**
   * `round` is an id, a name, or "current", its default; `form` an id or a name. Throws
   * ArgumentError.
   */
  constructor(server: string, round?: string | { form: string }, options?: ReporterOptions);
  readonly ledger: Ledger;
  /** The checked form, or null. */
  form(): Promise<Form | null>;
  /** The checked parameters of the round; of a form that of the report, ticket or draw. */
  round(): Promise<Round>;
  /**
   * Report an item's label (always a string) or its index (always a number); in a round for numbers
   * the number, from -1 to 1; for a form a value for each question, of which the drawn question's is
   * read. If the ledger has a report without an answer, that one is sent again.
   */
  report(value: string | number | Readonly<Record<string, string | number>>): Promise<Receipt>;
  /** Send each pending report again to its server. */
  resume(): Promise<readonly Receipt[]>;
}

/** A form, or one question with its epsilon: the program's own list of labels. */
export interface UsageForm {
  /** The largest that a round may ask for; default 1. */
  epsilon?: number;
  questions?: readonly { question: string; items: readonly string[] }[];
  question?: string;
  items?: readonly string[];
}

/** A label for each question, or for a single one. */
export type UsageAnswers = string | Readonly<Record<string, string>>;

/** Reports a program's usage to the open round or form of a series, once in each period. */
export class Usage {
  /** Throws ArgumentError. */
  constructor(
    server: string,
    series: string,
    form: UsageForm,
    options?: {
      /** The period in days; default 91. */
      every?: number;
      /** Limits the sum of epsilon over all reports of the store; default MAX_TOTAL_EPSILON. */
      limit?: number;
      /** Keeps the ledger; by default the browser's database. Required outside a browser. */
      store?: Store;
      /** Replaces the platform's fetch. */
      fetch?: typeof globalThis.fetch;
      /** The time in milliseconds. */
      clock?: () => number;
    },
  );
  /** Report if an answer is due. Throws UnknownItemError; the promise never fails. */
  report(answers: UsageAnswers): Promise<void>;
  /** The answer that is sent next, or null if none can be drawn now. Throws UnknownItemError. */
  preview(answers: UsageAnswers): Promise<Entry | null>;
  /** Send nothing until `on`, and delete an unsent answer; whether that is stored. */
  off(): Promise<boolean>;
  /** Report again, from the next due time on; whether that is stored. */
  on(): Promise<boolean>;
  /** The epsilon spent, the day of the next try, and the last outcome with its day. */
  log(): Promise<string>;
}

/** Base of all errors of this client. No message contains a user's value. */
export class ClientError extends Error {
  /** What happens to a report in the ledger, or null. */
  readonly note: string | null;
}
/** The caller asked for something impossible. */
export class CallerError extends ClientError {}
/** An argument or URL is invalid, or a page over plain http reports to more than a practice round. */
export class ArgumentError extends CallerError {}
/** The value is not an item of the round. */
export class UnknownItemError extends CallerError {}
/** This client does not know the round's protocol. */
export class UnknownProtocolError extends CallerError {}
/** The round needs a key or another ticket, or takes no ticket, or its form is closed. */
export class AccessError extends CallerError {
  /** What the round takes reports with; null for neither. */
  readonly needs: "key" | "ticket" | null;
}
/** The ledger has this round's answered report, or one to another round of its form. */
export class AlreadyReportedError extends CallerError {}
/** A privacy limit of the user forbids this report; nothing was perturbed or sent. */
export class LimitError extends ClientError {}
/** The round's epsilon is above the user's limit for one round. */
export class EpsilonTooHighError extends LimitError {}
/** With this round, the epsilon of all rounds exceeds the user's total. */
export class EpsilonSpentError extends LimitError {}
/** The ledger cannot be read, trusted or written. Nothing was perturbed. */
export class LedgerError extends ClientError {}
/** The server refused with a problem (RFC 9457). */
export class RefusedError extends ClientError {
  readonly status: number;
  readonly title: string;
  readonly detail: string | null;
  readonly type: string;
  readonly position: number | null;
  /** An earlier try had no final answer, so it may have been processed. */
  readonly inDoubt: boolean;
  /** The fragment of `type`, such as "round-closed", or an empty string. */
  readonly slug: string;
}
/** The server, or a proxy before it, does not follow the interface. */
export class ServerError extends ClientError {}
/** A response has a wrong form or field, or is too large. */
export class InvalidAnswerError extends ServerError {}
/** A round's parameters contradict each other. */
export class InconsistentRoundError extends ServerError {}
/** No retry got a final answer; sending the same report again is safe. */
export class UnansweredError extends ClientError {
  /** Status of the last response (408, 429 or 5xx), or null. */
  readonly status: number | null;
  /** Seconds that the server asked to wait. */
  readonly retryAfter: number | null;
}
