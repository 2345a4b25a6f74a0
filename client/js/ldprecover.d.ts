/**
 * A client for browsers and Node: perturbs one user's value, writes the report down, and posts it.
 */

/** The default limit of epsilon for one round. */
export const MAX_EPSILON: 2;
/** The default limit of epsilon over all rounds of one ledger. */
export const MAX_TOTAL_EPSILON: 4;

/** Keeps texts by name; what `set` has taken must outlive the page or process. */
export interface Store {
  get(name: string): string | null | undefined | Promise<string | null | undefined>;
  set(name: string, text: string): unknown;
  /** Runs `act` while nobody else holds the lock of this name; returns what it returns. */
  lock<T>(name: string, act: () => Promise<T>): Promise<T>;
}

/** The browser's database, written through to the disk: the default of pages. */
export function browserStore(): Store;
/** localStorage, which a browser that dies may lose the last seconds of. */
export function localStore(): Store;
/** Memory, which dies with the page or process: for tests and demonstrations. */
export function memoryStore(): Store;

/** One report in the ledger. It travels under its ticket if it has one, else under its key. */
export interface Entry {
  readonly roundId: string;
  readonly roundName: string;
  readonly serverUrl: string;
  readonly digest: string;
  readonly epsilon: number;
  readonly key: string;
  /** The packed report in hexadecimal. */
  readonly packed: string;
  readonly state: "pending" | "accepted" | "refused";
  readonly reason: string | null;
  readonly ticket: string | null;
  /** Tries under the ticket of which nobody knows that they were not taken. */
  readonly openTries: number;
}

/**
 * What this user has reported, written down before it is sent, and what that has cost in epsilon.
 */
export class Ledger {
  /**
   * `maxTotalEpsilon` limits the sum of epsilon over all rounds; Infinity lifts it. Throws
   * ArgumentError.
   */
  constructor(store: Store, options?: { maxTotalEpsilon?: number });
  /** Every report. */
  entries(): Promise<readonly Entry[]>;
  /** The sum of epsilon over all rounds. */
  spent(): Promise<number>;
  /** The seed that a ticket picked for a round, null for a round without. */
  seed(roundId: string): Promise<number | null>;
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
    /** Waits so many seconds. */
    sleep?: (seconds: number) => Promise<unknown>;
    /** The time in seconds. */
    clock?: () => number;
    /** A uniform number from 0 up to 1. */
    draw?: () => number;
  });
}

/** A round as its server states it, checked. */
export interface Round {
  readonly id: string;
  readonly name: string;
  readonly protocol: "grr" | "oue" | "olh" | "sue" | "ss" | "hr";
  readonly epsilon: number;
  readonly items: readonly string[];
  /** The number of items. */
  readonly d: number;
  /** The hash range of olh, the subset size of ss, null of the others. */
  readonly own: number | null;
  /** How many public seeds tickets pick from, null where users draw what they need. */
  readonly givenSeeds: number | null;
  /** Indices of items that nobody holds. */
  readonly canaries: readonly number[];
  readonly quarantine: boolean;
  readonly access: string;
  readonly digest: string;
  readonly thresholds: Readonly<Record<string, bigint>>;
}

/** What became of a report: stored and counted, not answered yet, or never to be taken. */
export interface Receipt {
  readonly roundId: string;
  readonly roundName: string;
  readonly epsilon: number;
  readonly state: "accepted" | "pending" | "refused";
  /** The report was made by an earlier call or page, and its bytes sent again. */
  readonly resent: boolean;
  /** The server had it already. */
  readonly duplicate: boolean;
  /** Why it is not accepted. */
  readonly reason: string | null;
}

export interface ReporterOptions {
  /** The user's ledger; by default in the browser's own database. Elsewhere it must be given. */
  ledger?: Ledger;
  /** Limits each round; MAX_EPSILON unless given. */
  maxEpsilon?: number;
  /** A report key, where the round wants one. */
  key?: string | null;
  /** A ticket, where the round wants one. */
  ticket?: string | null;
  /**
   * Send the report to the round's name, and write it down under it: behind a proxy to several
   * deployments the round has another id on each. Not with tickets; from the first report on.
   */
  byName?: boolean;
  /** Seconds that a request may take; 30 unless given. */
  timeout?: number;
  retries?: Retries;
  /** What carries requests, if it is not the platform's own. */
  fetch?: typeof globalThis.fetch;
}

/** Reports one user's value to a round, once. */
export class Reporter {
  /** `round` is an id, a name, or "current", its default. Throws ArgumentError. */
  constructor(server: string, round?: string, options?: ReporterOptions);
  readonly ledger: Ledger;
  /** The round as its server states it, checked. */
  round(): Promise<Round>;
  /**
   * Report an item's label (always a string) or its index (always a number); in a round for numbers
   * the number, from -1 to 1. A report that was made before and not answered is sent again instead.
   */
  report(value: string | number): Promise<Receipt>;
  /** Send every pending report again, each to the server it was made for. */
  resume(): Promise<readonly Receipt[]>;
}

/** Base of what this client throws on purpose. No message holds a user's value. */
export class ClientError extends Error {
  /** What this means for a report that was written down before, or null. */
  readonly note: string | null;
}
/** What was asked for cannot be done. */
export class CallerError extends ClientError {}
/** An argument, a URL or the page itself does not do. */
export class ArgumentError extends CallerError {}
/** The value is not an item of the round. */
export class UnknownItemError extends CallerError {}
/** This client does not know the round's protocol. */
export class UnknownProtocolError extends CallerError {}
/** The round does not take reports with what was given. */
export class AccessError extends CallerError {
  /** What it takes reports with, null for neither. */
  readonly needs: "key" | "ticket" | null;
}
/** The ledger already holds the round's one report. */
export class AlreadyReportedError extends CallerError {}
/** A privacy limit of the user forbids this round; nothing was perturbed or sent. */
export class LimitError extends ClientError {}
/** The round's epsilon is above the user's limit for one round. */
export class EpsilonTooHighError extends LimitError {}
/** All rounds together would be above the user's total. */
export class EpsilonSpentError extends LimitError {}
/** The ticket picks another seed than the user's first one of the round. */
export class SecondSeedError extends LimitError {}
/** The ledger cannot be read, trusted or written, so nothing is perturbed. */
export class LedgerError extends ClientError {}
/** The server refused with a problem (RFC 9457). */
export class RefusedError extends ClientError {
  readonly status: number;
  readonly title: string;
  readonly detail: string | null;
  readonly type: string;
  readonly position: number | null;
  /** An earlier try was not answered for good, so that it may have been taken. */
  readonly inDoubt: boolean;
  /** The heading that `type` points to, such as "round-closed"; empty without one. */
  readonly slug: string;
}
/** The server, or something that answers in its place, does not keep the interface. */
export class ServerError extends ClientError {}
/** An answer does not fit the interface. */
export class InvalidAnswerError extends ServerError {}
/** A round's parameters contradict each other. */
export class InconsistentRoundError extends ServerError {}
/** No answer that settles the request, after every retry; sending the same report again is safe. */
export class UnansweredError extends ClientError {
  /** Of the last answer (408, 429 or 5xx), null if none came. */
  readonly status: number | null;
  /** Seconds that the server asked to wait. */
  readonly retryAfter: number | null;
}
