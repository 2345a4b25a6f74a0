// A client for browsers and Node: perturbs one user's value, stores the report, and sends it.
export {
  AccessError,
  AlreadyReportedError,
  ArgumentError,
  CallerError,
  ClientError,
  EpsilonSpentError,
  EpsilonTooHighError,
  InconsistentRoundError,
  InvalidAnswerError,
  LedgerError,
  LimitError,
  RefusedError,
  ServerError,
  UnansweredError,
  UnknownItemError,
  UnknownProtocolError,
} from "./src/errors.js";
export { Ledger, MAX_TOTAL_EPSILON } from "./src/ledger.js";
export { MAX_EPSILON, Reporter } from "./src/reporter.js";
export { Retries } from "./src/retries.js";
export { browserStore, localStore, memoryStore } from "./src/stores.js";
export { Usage } from "./src/usage.js";
