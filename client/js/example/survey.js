// A survey of one question, on any web server:
//
//     survey.html?server=https://reports.example.org&round=lunch
//
// The server must list the page's origin in LDPRECOVER_CORS_ORIGINS. A ticket may follow, where no
// server logs it: #ticket=….
// Without a server it is that of the page: each server has this survey at page/survey.html?round=lunch.
import { AlreadyReportedError, Reporter, Retries, UnansweredError } from "../ldprecover.js";

const query = new URLSearchParams(`${location.search}&${location.hash.slice(1)}`);
const [title, question, promise, form, items, status] = [
  ...["title", "question", "promise", "form", "items", "status"],
].map((id) => document.getElementById(id));

const make = (tag, properties) => Object.assign(document.createElement(tag), properties);

function choice(label) {
  // The value is the label: an index would mean a number in a round for numbers.
  const input = make("input", { type: "radio", name: "item", value: label, required: true });
  const line = make("label");
  line.append(input, make("bdi", { textContent: label }));
  return line;
}

/** The field for a ticket; a report that has not arrived may go under its first one. */
function ticketField(required) {
  const input = make("input", { name: "ticket", required, autocomplete: "off", spellcheck: false });
  const line = make("label");
  line.append("Your ticket", input);
  return line;
}

const root = new URL(document.documentElement.dataset.server ?? "/", location.href).href;
const server = query.get("server") ?? root;

const REPORTED = "This browser has reported already. A second report would tell more of you.";

function unreachable(error) {
  if (new URL(server).origin === location.origin)
    return `The server does not answer: ${server}. It may have stopped, or the connection is gone.`;
  return (
    `The server does not answer this page: ${server}. It may have stopped; or it does not allow ` +
    `calls from ${location.origin}, which its operator must list in LDPRECOVER_CORS_ORIGINS (CORS).`
  );
}

function message(error) {
  if (error instanceof AlreadyReportedError) return REPORTED;
  if (error instanceof UnansweredError)
    return "No answer yet. Your report is kept here: press again, and the same one is sent.";
  return [error.message, error.note].filter(Boolean).join(": ");
}

/** Whether the server says that a round is closed. A server that cannot say will refuse the report. */
async function isClosed({ id }) {
  try {
    const answer = await fetch(new URL(`rounds/${id}`, `${server.replace(/\/+$/, "")}/`));
    return (await answer.json()).state === "closed";
  } catch {
    return false;
  }
}

async function start() {
  const name = query.get("round") ?? "current";
  const reader = new Reporter(server, name, { retries: new Retries({ total: 5 }) });
  const round = await reader.round().catch((error) => {
    throw error instanceof UnansweredError && !error.status ? Error(unreachable(error)) : error;
  });
  document.title = round.title ?? round.question ?? document.title;
  question.textContent = round.question ?? document.title;
  if (round.question && round.title) {
    title.textContent = round.title;
    title.hidden = false;
  }
  const times = Math.exp(round.epsilon).toFixed(1);
  promise.textContent =
    "Your answer is changed at random on this device before it is sent. Whatever is sent would be " +
    `at most ${times} times as likely under this answer as under any other.`;
  const entry = (await reader.ledger.entries()).find((each) => each.roundId === round.id);
  if (entry && entry.state !== "pending") {
    status.textContent = REPORTED;
    return;
  }
  if (!entry && (await isClosed(round))) {
    promise.textContent = "This round is closed: it takes no more reports.";
    return;
  }
  if (entry)
    status.textContent = "Your report has not arrived yet: press again to send the same one.";
  const shown = round.items.map(choice);
  items.append(...shown);
  if (round.access === "ticket" && !query.has("ticket")) items.after(ticketField(!entry));
  form.hidden = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    status.textContent = "Reporting.";
    try {
      const answers = new FormData(form);
      const ticket = query.get("ticket") ?? (answers.get("ticket")?.trim() || null);
      await new Reporter(server, name, { ticket }).report(answers.get("item"));
      status.textContent = round.thanks ?? "Thank you: your report is counted.";
    } catch (error) {
      status.textContent = message(error);
    }
  });
}

start().catch((error) => {
  promise.textContent = message(error);
});
