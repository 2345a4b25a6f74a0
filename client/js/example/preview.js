// A survey before it is opened: `ldprecover survey FILE --preview` writes it behind #preview=.
import { Ledger, memoryStore } from "../ldprecover.js";
import { assignedRound } from "../src/forms.js";

const CALL = /\/(forms|rounds)\/([^/]+)(\/\w+)?$/;

/**
 * Answer all calls of the server in this page, so that nothing is sent, from the description in a
 * query; add what else the link of an open survey has. Return a store in memory, the number of the
 * question that is shown, and how many there are.
 */
export async function preview(query) {
  const { form, rounds } = described(query.get("preview"));
  const { fetch } = globalThis;
  globalThis.fetch = async (address, options) => {
    const [, kind, id, part] = CALL.exec(String(address)) ?? [];
    if (!kind) return fetch(address, options); // a file of the page
    let body = rounds.find((round) => round.id === id);
    if (kind === "forms") body = form;
    else if (part === "/reports") body = { round: id, accepted: 1, duplicate: false };
    else if (!part) body = { state: "open" };
    return new Response(JSON.stringify(body), { status: part === "/reports" ? 202 : 200 });
  };
  const [store, questions] = [memoryStore(), rounds.length];
  const number = Math.min(questions, Math.max(1, Number(query.get("question")) || 1));
  const { id, access } = rounds[number - 1];
  query.set(...(form ? ["form", form.id] : ["round", id]));
  if (access === "ticket") query.set("ticket", ticketFor(number - 1, questions));
  else if (form) await new Ledger(store).draw(form.id, id);
  return { store, number, questions };
}

/** Return the description of a survey. Throws an Error if its text is not whole. */
function described(text) {
  try {
    const bytes = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    return JSON.parse(new TextDecoder().decode(Uint8Array.from(bytes, (c) => c.charCodeAt(0))));
  } catch {
    throw new Error("The address of this preview is not whole: copy all of it.");
  }
}

/** Return a made-up ticket that assigns the question of an index. */
function ticketFor(index, questions) {
  for (;;) {
    const mac = btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(16))));
    const ticket = `${"A".repeat(22)}.${mac.slice(0, 22).replace(/[+/]/g, "-")}`;
    if (assignedRound(ticket, questions) === index) return ticket;
  }
}
