// Forms: several rounds, of which each person answers one.
import { ArgumentError, InvalidAnswerError } from "./errors.js";
import { field, isReference } from "./rounds.js";

/** Return the first 64 bits of the MAC of a ticket `id.mac`, little-endian, which are uniform. */
export function ticketBits(ticket) {
  const mac = atob(ticket.split(".")[1].replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(mac, (each) => each.charCodeAt(0));
  return new DataView(bytes.buffer).getBigUint64(0, true);
}

/** Return the index of the one round, of the `rounds` of a form, that a ticket is for. */
export function assignedRound(ticket, rounds) {
  return Number(ticketBits(ticket) % BigInt(rounds));
}

/** Return the form that GET /forms/{form} states. Throws InvalidAnswerError. */
export function readForm(body) {
  const [id, name] = [field.text(body, "id"), field.text(body, "name")];
  const [title, assign] = [field.shown(body, "title"), body.assign];
  if (!["ticket", "client"].includes(assign))
    throw new InvalidAnswerError("assign must be ticket or client, all that this version knows");
  if (!Array.isArray(body.rounds) || !body.rounds.length || body.rounds.length > 50)
    throw new InvalidAnswerError("rounds must be an array of 1 to 50");
  const rounds = body.rounds.map((round) => {
    const [id, state] = ["id", "state"].map((name) => field.text(round ?? {}, name));
    const [question, language] = ["question", "language"].map((name) => field.shown(round, name));
    return { id, question, language, state };
  });
  const isDistinct = (values) => new Set([...values, null]).size > values.length;
  const ids = rounds.map((round) => round.id);
  if (![id, ...ids].every(isReference) || !isDistinct(ids))
    throw new InvalidAnswerError("ids must be distinct, of letters, digits and . _ ~ -");
  if (!isDistinct(rounds.map((round) => round.question)))
    throw new InvalidAnswerError("each round of a form must have a question of its own");
  return Object.freeze({ id, name, title, assign, rounds });
}

/** Throw ArgumentError unless `answers` has a value for each question of a form, and no other. */
export function checkAnswers({ rounds }, answers) {
  const keys = Object.keys(Object(answers));
  const missing = rounds.map((round) => round.question).filter((each) => !keys.includes(each));
  if (!missing.length && keys.length === rounds.length) return;
  throw new ArgumentError(
    "give a value for each question of the form, and for no other; without a value: " +
      (missing.join(", ") || "none"), // the other keys may be values
  );
}
