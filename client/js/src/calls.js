// Calling a server: the one module that fetches.
import { ArgumentError, InvalidAnswerError, RefusedError, UnansweredError } from "./errors.js";
import { isPassing, neverTaken, retryAfter } from "./retries.js";
import { isReference, plain } from "./rounds.js";

const MAX_ANSWER_BYTES = 64 * 2 ** 20; // far more than 100,000 items with long labels take
const MEDIA_TYPE = "application/vnd.ldprecover.reports";
const TICKET = /^[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{22}$/;
const LOCAL = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** Return a server's URL without a slash at its end. Throws ArgumentError for one that is none. */
export function serverUrl(url) {
  let parsed;
  try {
    parsed = new URL(url);
  } catch {
    throw new ArgumentError("the server's URL cannot be read");
  }
  if (!/^https?:$/.test(parsed.protocol))
    throw new ArgumentError("the server's URL must begin with http:// or https://");
  if (parsed.username || parsed.password) {
    throw new ArgumentError(
      "the server's URL must hold no user or password: it is written down with each report",
    );
  }
  if (parsed.search || parsed.hash)
    throw new ArgumentError("the server's URL must have no query and no fragment");
  return parsed.href.replace(/\/+$/, "");
}

/** Return a ticket. Throws ArgumentError for what cannot be one. */
export function checkedTicket(ticket) {
  if (typeof ticket === "string" && TICKET.test(ticket)) return ticket;
  throw new ArgumentError(
    "a ticket must be 22 characters, a dot, and 22 more, from A-Z a-z 0-9 _ -",
  );
}

/**
 * The calls that a reporter makes of one server; `timeout` is the seconds that a whole request may
 * take.
 */
export class Calls {
  constructor(url, { key = null, timeout, retries, fetch }) {
    Object.assign(this, { url, key, timeout, retries, fetch });
  }

  /** Return what GET /rounds/{id}/parameters answers. */
  parameters(reference) {
    if (!isReference(reference))
      throw new ArgumentError('a round must be named by its id, its name or "current"');
    return this.#call("GET", `/rounds/${reference}/parameters`, 200, {});
  }

  /** POST a packed report under its key, or under its ticket. */
  submit(roundId, packed, key, ticket) {
    const headers = { "Content-Type": MEDIA_TYPE };
    if (ticket === null) {
      headers["Idempotency-Key"] = key;
    } else {
      this.#warnIfReadable("ticket");
      headers.Authorization = `Ticket ${checkedTicket(ticket)}`;
    }
    return this.#call("POST", `/rounds/${roundId}/reports`, 202, headers, packed);
  }

  async #call(method, path, status, headers, body) {
    const call = `${method} ${path}`;
    if (this.key !== null) {
      this.#warnIfReadable("key");
      headers = { Authorization: `Bearer ${this.key}`, ...headers };
    }
    const again = this.retries.begin();
    let inDoubt = false;
    for (;;) {
      const answer = await this.#send(method, path, headers, body);
      const isOver = answer.status !== undefined && !isPassing(answer.status);
      if (isOver) return take(answer, status, call, inDoubt);
      // A page is not told whether a request that failed had arrived.
      inDoubt ||= !neverTaken(answer.status);
      const problem = answer.status === undefined ? null : problemIn(answer);
      const asked = answer.headers ? retryAfter(answer.headers) : null;
      // An operator has to start the server anew: no retry is as patient as that.
      if (problem?.slug === "plugin-not-loaded" || !(await again(asked))) {
        const what =
          answer.status === undefined ? "does not answer" : `answered ${answer.status} to`;
        const why = problem?.message ?? answer.reason ?? "no reason given";
        throw new UnansweredError(
          `${this.url} ${what} (${call}): ${why}`,
          answer.status ?? null,
          asked,
        );
      }
    }
  }

  /** Return the answer with its whole body, or only the reason why there is none. */
  async #send(method, path, headers, body) {
    const end = new AbortController();
    const timer = setTimeout(() => end.abort(), 1000 * this.timeout);
    try {
      const response = await this.fetch(this.url + path, {
        method,
        headers: { Accept: "application/json, application/problem+json", ...headers },
        body,
        signal: end.signal,
        // Neither reports nor keys go where the user did not send them; nothing ties reports
        // together.
        redirect: "manual",
        credentials: "omit",
        referrerPolicy: "no-referrer",
      });
      const { status, type } = response;
      if (type === "opaqueredirect" || (status >= 300 && status < 400 && status !== 304)) {
        throw new InvalidAnswerError(
          `${method} ${path}: the server redirects; give the URL it redirects to`,
        );
      }
      return { status, headers: response.headers, text: await textOf(response) };
    } catch (error) {
      if (error instanceof InvalidAnswerError) throw error;
      return {
        reason: end.signal.aborted
          ? `no whole answer in ${this.timeout} seconds`
          : String(error?.message),
      };
    } finally {
      clearTimeout(timer);
    }
  }

  #warnIfReadable(secret) {
    const { protocol, hostname, host } = new URL(this.url);
    if (protocol === "http:" && !LOCAL.test(hostname)) {
      console.warn(
        `the ${secret} goes to ${host} over plain http, where it can be read on the way: use https`,
      );
    }
  }
}

async function textOf(response) {
  const pieces = new TextDecoder();
  let [text, size] = ["", 0];
  const reader = response.body?.getReader();
  for (let piece = await reader?.read(); piece && !piece.done; piece = await reader.read()) {
    size += piece.value.length;
    if (size > MAX_ANSWER_BYTES) {
      await reader.cancel();
      throw new InvalidAnswerError(`the answer is larger than ${MAX_ANSWER_BYTES} bytes`);
    }
    text += pieces.decode(piece.value, { stream: true });
  }
  return text + pieces.decode();
}

/** Return what a final answer says: its JSON object. Throws RefusedError and InvalidAnswerError. */
function take(answer, status, call, inDoubt) {
  if (answer.status === status) {
    const body = objectIn(answer);
    if (body) return body;
    throw new InvalidAnswerError(`${call}: the answer must be a JSON object`);
  }
  const problem = answer.status >= 400 ? problemIn(answer) : null;
  if (problem) throw Object.assign(problem, { inDoubt });
  throw new InvalidAnswerError(
    `${call}: status ${answer.status} without a problem, so this is not an LDPRecover server`,
  );
}

function problemIn(answer) {
  const kind = (answer.headers.get("content-type") ?? "").split(";")[0].trim().toLowerCase();
  const body = kind === "application/problem+json" ? objectIn(answer) : null;
  if (!body) return null;
  const text = (name) =>
    typeof body[name] === "string" && body[name] ? plain(body[name]) : undefined;
  return new RefusedError({
    status: answer.status,
    title: text("title") ?? `the server refused (${answer.status})`,
    detail: text("detail"),
    type: text("type"),
    position: Number.isInteger(body.position) ? body.position : null,
  });
}

function objectIn(answer) {
  try {
    const body = JSON.parse(answer.text);
    return typeof body === "object" && body !== null && !Array.isArray(body) ? body : null;
  } catch {
    return null;
  }
}
