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

export class ClientError extends Error {
  /** What this means for a report that was written down before, or null. */
  note = null;

  get name() {
    return this.constructor.errorName;
  }

  // A minifier changes the names of classes, and callers may compare these.
  static errorName = "ClientError";
}

export class CallerError extends ClientError {
  static errorName = "CallerError";
}

export class ArgumentError extends CallerError {
  static errorName = "ArgumentError";
}

/** Throw ArgumentError if there are options beside those known: a misspelt limit would be none. */
export function refuseOthers(others) {
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

  /** `needs` is what the round takes reports with: "key", "ticket", or null for neither. */
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

export class SecondSeedError extends LimitError {
  static errorName = "SecondSeedError";
}

export class LedgerError extends ClientError {
  static errorName = "LedgerError";
}

export class RefusedError extends ClientError {
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
   * `status` is that of the last answer (408, 429 or 5xx), null if none came; `retryAfter` the
   * seconds the server asked to wait, or null. Sending the same bytes again under the same key is
   * safe.
   */
  constructor(message, status = null, retryAfter = null) {
    super(message);
    Object.assign(this, { status, retryAfter });
  }
}
