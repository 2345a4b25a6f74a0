// Errors of the client: a tree by cause. CallerError is a wrong argument, LimitError the user's own
// privacy limit, LedgerError a store on this device, RefusedError a problem that the server states,
// ServerError a response that breaks the interface, UnansweredError the network or a busy server.
//
// No message contains a user's value: messages may be logged.

export class ClientError extends Error {
  /** What happens to a report in the ledger, or null. */
  note = null;

  get name() {
    return this.constructor.errorName;
  }

  // Minifiers rename classes, and callers may compare these names.
  static errorName = "ClientError";
}

export class CallerError extends ClientError {
  static errorName = "CallerError";
}

export class ArgumentError extends CallerError {
  static errorName = "ArgumentError";
}

/** Throw ArgumentError for an unknown option: a misspelt limit would not limit anything. */
export function rejectUnknown(others) {
  const [name] = Object.keys(others);
  if (name !== undefined) throw new ArgumentError(`there is no option ${name}`);
}

export class UnknownItemError extends CallerError {
  static errorName = "UnknownItemError";
}

export class UnknownProtocolError extends CallerError {
  static errorName = "UnknownProtocolError";
}

export class AccessError extends CallerError {
  static errorName = "AccessError";

  /** `needs` is "key", "ticket", or null if the round takes reports without either. */
  constructor(message, needs) {
    super(message);
    this.needs = needs;
  }
}

export class AlreadyReportedError extends CallerError {
  static errorName = "AlreadyReportedError";
}

export class LimitError extends ClientError {
  static errorName = "LimitError";
}

export class EpsilonTooHighError extends LimitError {
  static errorName = "EpsilonTooHighError";
}

export class EpsilonSpentError extends LimitError {
  static errorName = "EpsilonSpentError";
}

export class LedgerError extends ClientError {
  static errorName = "LedgerError";
}

export class RefusedError extends ClientError {
  static errorName = "RefusedError";

  /**
   * A problem (RFC 9457): HTTP status, title, detail or null, type, index of the bad report or
   * null. `inDoubt` says that an earlier try had no final answer, so it may have been processed.
   */
  constructor({ status, title, detail = null, type = "about:blank", position = null }) {
    const where = position === null ? "" : ` (report ${position})`;
    super(`${title}${where}${withoutTitle(title, detail)}`);
    Object.assign(this, { status, title, detail, type, position, inDoubt: false });
  }

  /** The fragment of `type`, such as "round-closed", or an empty string. */
  get slug() {
    return this.type.split("#").slice(1).at(-1) ?? "";
  }
}

export class ServerError extends ClientError {
  static errorName = "ServerError";
}

export class InvalidAnswerError extends ServerError {
  static errorName = "InvalidAnswerError";
}

export class InconsistentRoundError extends ServerError {
  static errorName = "InconsistentRoundError";
}

export class UnansweredError extends ClientError {
  static errorName = "UnansweredError";

  /**
   * `status` is that of the last response (408, 429 or 5xx) or null, `retryAfter` the seconds that
   * it asked to wait or null. Sending the same bytes again under the same key is safe.
   */
  constructor(message, status = null, retryAfter = null) {
    super(message);
    Object.assign(this, { status, retryAfter });
  }
}

/** Return the detail as it follows its title, which it does not repeat. */
function withoutTitle(title, detail) {
  if (!detail) return "";
  const rest = detail.slice(title.length);
  const repeats =
    detail.toLowerCase().startsWith(title.toLowerCase()) && !/^[\p{L}\p{N}]/u.test(rest);
  return repeats ? rest : `: ${detail}`;
}
