// HTTP calls of a server; the only module that calls fetch.
import { ArgumentError, InvalidAnswerError, RefusedError, UnansweredError } from "./errors.js";
import { isTransient, isUnprocessed, retryAfter } from "./retries.js";
import { isReference, printable } from "./rounds.js";

const MAX_ANSWER_BYTES = 64 * 2 ** 20; // 100,000 items with long labels need far less
const MEDIA_TYPE = "application/vnd.ldprecover.reports";
const TICKET = /^[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{22}$/;
const LOCAL = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** Return a server's URL without a trailing slash. Throws ArgumentError for an invalid one. */
export function serverUrl(url) {
  let parsed;
  try {
    parsed = new URL(url);
  } catch {
    throw new ArgumentError("the server's URL cannot be read");
  }
  if (!/^https?:$/.test(parsed.protocol))
    throw new ArgumentError("the server's URL must begin with http:// or https://");
  if (parsed.href.includes("@")) {
    throw new ArgumentError(
      "the server's URL must hold no user, password or @: the ledger stores it with each report",
    );
  }
  if (parsed.search || parsed.hash)
    throw new ArgumentError("the server's URL must have no query and no fragment");
  return parsed.href.replace(/\/+$/, "");
}

/** Return a ticket without white space around it. Throws ArgumentError if it is malformed. */
export function validateTicket(ticket) {
  if (typeof ticket === "string" && TICKET.test(ticket.trim())) return ticket.trim();
  throw new ArgumentError(
    "a ticket must be 22 characters, a dot, and 22 more, from A-Z a-z 0-9 _ -",
  );
}

/**
 * The calls of a reporter to one server. `timeout` limits the seconds of a whole request.
 */
export class Calls {
  constructor(url, { key = null, timeout, retries, fetch }) {
    Object.assign(this, { url, key, timeout, retries, fetch });
  }

  /** GET /rounds/{id}/parameters. */
  parameters(reference) {
    if (!isReference(reference))
      throw new ArgumentError('a round must be named by its id, its name or "current"');
    return this.#call("GET", `/rounds/${reference}/parameters`, 200, {});
  }

  /** GET /forms/{id}. */
  form(reference) {
    if (!isReference(reference))
      throw new ArgumentError("a form must be named by its id or its name");
    return this.#call("GET", `/forms/${reference}`, 200, {});
  }

  /** GET /series/{name}. */
  series(reference) {
    if (!isReference(reference)) throw new ArgumentError("a series must be named by its name");
    return this.#call("GET", `/series/${reference}`, 200, {});
  }

  /** POST a packed report under its key or ticket. */
  submit(roundId, packed, key, ticket) {
    const headers = { "Content-Type": MEDIA_TYPE };
    if (ticket === null) {
      headers["Idempotency-Key"] = key;
    } else {
      this.#warnIfUnencrypted("ticket");
      headers.Authorization = `Ticket ${validateTicket(ticket)}`;
    }
    return this.#call("POST", `/rounds/${roundId}/reports`, 202, headers, packed);
  }

  async #call(method, path, status, headers, body) {
    const call = `${method} ${path}`;
    if (this.key !== null) {
      this.#warnIfUnencrypted("key");
      headers = { Authorization: `Bearer ${this.key}`, ...headers };
    }
    const waitToRetry = this.retries.begin();
    let inDoubt = false;
    for (;;) {
      const answer = await this.#send(method, path, headers, body);
      const isFinal = answer.status !== undefined && !isTransient(answer.status);
      if (isFinal) return parse(answer, status, call, inDoubt);
      // Browsers do not say whether a failed request had reached the server.
      inDoubt ||= !isUnprocessed(answer.status);
      const problem = answer.status === undefined ? null : problemIn(answer);
      const retrySeconds = answer.headers ? retryAfter(answer.headers) : null;
      // An operator has to restart the server, which takes longer than all retries.
      if (problem?.slug === "plugin-not-loaded" || !(await waitToRetry(retrySeconds))) {
        const outcome =
          answer.status === undefined ? "does not answer" : `answered ${answer.status} to`;
        const reason = problem?.message ?? answer.reason ?? "no reason given";
        throw new UnansweredError(
          `${this.url} ${outcome} (${call}): ${reason}`,
          answer.status ?? null,
          retrySeconds,
        );
      }
    }
  }

  /** Return the response with its whole body, or only the reason why there is no response. */
  async #send(method, path, headers, body) {
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(), 1000 * this.timeout);
    try {
      const response = await this.fetch(this.url + path, {
        method,
        headers: { Accept: "application/json, application/problem+json", ...headers },
        body,
        signal: controller.signal,
        // Reports and keys go only to the server that the user named. Nothing links reports.
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
        reason: controller.signal.aborted
          ? `no whole answer in ${this.timeout} seconds`
          : String(error?.message),
      };
    } finally {
      clearTimeout(timer);
    }
  }

  #warnIfUnencrypted(secret) {
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

/** Return the JSON object of a final response. Throws RefusedError and InvalidAnswerError. */
function parse(answer, status, call, inDoubt) {
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
    typeof body[name] === "string" && body[name] ? printable(body[name]) : undefined;
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
