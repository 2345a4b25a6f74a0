// Reads and checks the parameters of a round; nothing here trusts the server.
//
// A missing field or wrong type is an InvalidAnswerError, a contradiction an InconsistentRoundError.
import {
  ArgumentError,
  InconsistentRoundError,
  InvalidAnswerError,
  UnknownProtocolError,
} from "./errors.js";
import { labelKey } from "./labels.js";
import { PROTOCOLS } from "./protocols.js";
import { sha256 } from "./sha256.js";

const TOLERANCE = 1e-9; // relative, of p and q: exp differs between languages in the last bits
const MAX_ITEMS = 100_000;
const REFERENCE = /^[A-Za-z0-9][A-Za-z0-9._~-]{0,127}$/; // of a round in a path
const OWN = ["hash_range", "subset_size"];

/**
 * The fields of GET /rounds/{id}/parameters that this client reads.
 * @typedef {object} Parameters
 * @property {string} id
 * @property {string} name
 * @property {string} protocol
 * @property {number} epsilon
 * @property {string[]} items
 * @property {number | null} hash_range
 * @property {number | null} subset_size
 * @property {number} p
 * @property {number} q
 * @property {boolean} practice
 * @property {string | null} form
 * @property {string} access
 * @property {string} digest
 * @property {string | null} question
 * @property {string | null} title
 * @property {string | null} thanks
 * @property {string | null} language
 * @property {Object<string, string>} thresholds
 */

/** Tell whether a text can name a round in a path. */
export function isReference(text) {
  return typeof text === "string" && REFERENCE.test(text);
}

/** Return untrusted text fit to be shown: without control characters, at most 300 long. */
export function printable(text) {
  const shown = text.slice(0, 300).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, "\ufffd");
  return text.length > 300 ? `${shown}\u2026` : shown;
}

/**
 * Readers of fields that must be text, a finite number, a safe integer of at least `least`, a text
 * to show or null, or true or false. Null and false are the defaults.
 */
export const field = {
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
  shown(body, name) {
    const value = body[name] ?? null;
    if (value === null || (typeof value === "string" && /^[^\p{Cs}\p{Cc}]{1,300}$/u.test(value)))
      return value;
    throw new InvalidAnswerError(`${name} must be a text of 1 to 300 characters`);
  },
  flag(body, name) {
    const value = body[name] ?? false;
    if (typeof value === "boolean") return value;
    throw new InvalidAnswerError(`${name} must be true or false`);
  },
};

/**
 * Return the round that GET /rounds/{id}/parameters states. Throws ServerError,
 * UnknownProtocolError, and, on a page over plain http unless the round is for practice,
 * ArgumentError.
 * @param {Parameters} body
 */
export async function readRound(body, crypto) {
  const name = field.text(body, "protocol");
  const protocol = PROTOCOLS.get(name);
  if (!protocol)
    throw new UnknownProtocolError(`protocol '${printable(name)}' is not known to this client`);
  const items = labels(body);
  const round = {
    id: field.text(body, "id"),
    name: field.text(body, "name"),
    protocol: name,
    epsilon: field.number(body, "epsilon"),
    items,
    d: items.length,
    own: ownParameter(body, protocol, name),
    practice: field.flag(body, "practice"),
    form: field.shown(body, "form"),
    access: field.text(body, "access"),
    digest: field.text(body, "digest"),
    question: field.shown(body, "question"),
    title: field.shown(body, "title"),
    thanks: field.shown(body, "thanks"),
    language: field.shown(body, "language"),
  };
  if (!isReference(round.id))
    throw new InvalidAnswerError("id must be letters, digits and . _ ~ -");
  checkRanges(round, protocol);
  round.thresholds = protocol.thresholds(round);
  checkChances(body, round, protocol);
  if (round.digest !== (await digestOf(round, crypto))) {
    throw new InconsistentRoundError("the round's digest is not that of its parameters");
  }
  // Browsers give `subtle` to pages over https or from this device alone.
  if (!crypto.subtle && !round.practice) {
    throw new ArgumentError(
      "a page that reports must come over https, or from this device: open its https:// address; " +
        "over plain http only practice rounds may be answered",
    );
  }
  return Object.freeze(round);
}

/** Return the digest of a round, SHA-256 in hex, which tests/vectors/parameters.json pins. */
export async function digestOf(round, crypto) {
  const parts = [text(`${round.protocol}\0`), f8(round.epsilon), u4(round.own ?? 0, round.d)];
  for (const label of round.items) {
    const utf8 = text(label);
    parts.push(u4(utf8.length), utf8);
  }
  if (round.practice) parts.push(text("practice"));
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    bytes.set(part, offset);
    offset += part.length;
  }
  return hex(
    crypto.subtle ? new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)) : sha256(bytes),
  );
}

/** Return bytes as hexadecimal digits. */
export function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function labels(body) {
  const items = body.items;
  if (!Array.isArray(items) || !items.every((label) => typeof label === "string")) {
    throw new InvalidAnswerError("items must be an array of strings");
  }
  if (items.length < 2 || items.length > MAX_ITEMS)
    inconsistent(`${items.length} items, not 2 to ${MAX_ITEMS}`);
  // UTF-8 would replace a lone surrogate, so two labels could have one digest.
  if (items.some((label) => /[\p{Cs}\p{Cc}]|^.{301}/su.test(label) || !labelKey(label)))
    inconsistent("an item that is no text of 1 to 300 characters");
  if (new Set(items.map(labelKey)).size < items.length) inconsistent("items that are not distinct");
  return items;
}

function ownParameter(body, protocol, name) {
  for (const other of OWN) {
    if (other !== protocol.own && body[other] != null)
      inconsistent(`a ${other}, which ${name} has not`);
  }
  // A client never computes it: both sides use the stated value.
  return protocol.own ? field.integer(body, protocol.own, 0) : null;
}

function checkRanges({ protocol: name, epsilon, d, own }, protocol) {
  if (!(epsilon >= 0.01 && epsilon <= 10)) inconsistent(`epsilon ${epsilon}, not 0.01 to 10`);
  if (protocol.own) {
    const [low, high] = protocol.ownRange({ d });
    if (own < low || own > high) inconsistent(`${protocol.own} ${own}, not ${low} to ${high}`);
    if (protocol.allows && !protocol.allows({ d, own })) {
      inconsistent(`${protocol.own} ${own}, which ${name} over ${d} items does not allow`);
    }
  }
}

function checkChances(body, round, protocol) {
  const expected = protocol.chances(round);
  ["p", "q"].forEach((name, i) => {
    const stated = field.number(body, name);
    if (!(Math.abs(stated - expected[i]) <= TOLERANCE * expected[i])) {
      throw new InconsistentRoundError(
        `the round states ${name} = ${stated}, but ${round.protocol} with its parameters has ${expected[i]}`,
      );
    }
  });
  const stated = body.thresholds ?? {};
  if (typeof stated !== "object") throw new InvalidAnswerError("thresholds must be an object");
  for (const [name, threshold] of Object.entries(round.thresholds)) {
    // Only one integer keeps epsilon and differs from p or q by rounding alone.
    if (name in stated && stated[name] !== String(threshold)) {
      throw new InconsistentRoundError(
        `the round states another threshold ${name} than ${threshold}`,
      );
    }
  }
}

function inconsistent(fault) {
  throw new InconsistentRoundError(`no round can have ${fault}`);
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
