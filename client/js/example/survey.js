// A survey of one question, on any web server:
//
//     survey.html?server=https://reports.example.org&round=lunch
//
// The server must list the page's origin in LDPRECOVER_CORS_ORIGINS; without one it is that of the
// page, at page/survey.html?round=lunch. With &shuffle each visitor sees the answers in an order
// drawn at random. A ticket may follow, where no server logs it: #ticket=….
import { AlreadyReportedError, Ledger, MAX_EPSILON, Reporter } from "../ldprecover.js";
import { Retries, UnansweredError, browserStore } from "../ldprecover.js";
import { attackerSuccessRate } from "../src/protocols.js";
import { shuffled, wordsFrom } from "../src/words.js";
import { combobox } from "./combobox.js";

const RADIOS = 14; // items; more are searched
const query = new URLSearchParams(`${location.search}&${location.hash.slice(1)}`);
const element = Object.fromEntries(
  "title question practice promise exact privacy form items fault status"
    .split(" ")
    .map((id) => [id, document.getElementById(id)]),
);
const { form, status } = element;

const make = (tag, properties) => Object.assign(document.createElement(tag), properties);

function choice(label) {
  // The value is the label: an index would mean a number in a round for numbers.
  const input = make("input", { type: "radio", name: "item", value: label });
  input.setAttribute("aria-describedby", "fault");
  const line = make("label");
  line.append(input, make("bdi", { textContent: label }));
  return line;
}

/** Show what users choose from; return the first control and a function that reads the choice. */
function choices(items) {
  const isShuffled = query.has("shuffle");
  const labels = isShuffled ? shuffled(items, wordsFrom(crypto)) : items;
  const order = isShuffled ? "random order" : "the order given";
  const note = make("p", { className: "order", textContent: `Answers in ${order}.` });
  if (labels.length <= RADIOS) {
    const fieldset = make("fieldset");
    const legend = make("legend", { textContent: "Your answer" });
    fieldset.append(legend, note, ...labels.map(choice));
    element.items.append(fieldset);
    return {
      input: fieldset.querySelector("input"),
      value: () => new FormData(form).get("item"),
      fault: "Choose an answer.",
    };
  }
  const box = combobox(labels);
  box.input.setAttribute("aria-describedby", "suggested fault");
  element.items.append(...(isShuffled ? [note] : []), box.root);
  return { ...box, fault: "Choose one of the answers: type a part of it, then pick it." };
}

/** The field for a ticket; a report that has not arrived may go under its first one. */
function ticketField() {
  const input = make("input", { name: "ticket", autocomplete: "off", spellcheck: false });
  input.value = query.get("ticket") ?? "";
  input.setAttribute("aria-describedby", "ticket-fault");
  const line = make("label");
  line.append("Your ticket", input);
  const fault = make("p", { id: "ticket-fault", className: "fault" });
  element.fault.after(line, fault);
  return { input, fault };
}

/** Say under a field what is missing, and go there; an empty text takes that back. */
function complain(input, place, text) {
  place.textContent = text;
  if (!text) return input.removeAttribute("aria-invalid");
  input.setAttribute("aria-invalid", "true");
  return input.focus();
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

/**
 * Say how far a report protects its user. No report of any epsilon-private protocol is guessed more
 * often than e^epsilon/(e^epsilon + d - 1), where all d answers are equally likely before.
 */
function promise(round) {
  const { epsilon, d } = round;
  const times = Math.exp(epsilon);
  const guessed = times / (times + d - 1);
  const cases = 10 ** Math.max(2, Math.ceil(Math.log10(d))); // in one or more a blind guess is right
  const count = (number) => number.toLocaleString("en");
  const right = count(Math.ceil(guessed * cases - 1e-9)); // rounded up, since it is the most
  const blind = count(Math.round(cases / d));
  const replaced =
    guessed < 0.8
      ? "Your answer may be replaced by chance before it leaves this device."
      : "This protects you little: chance rarely replaces your answer before it leaves this device.";
  element.promise.textContent =
    `${replaced} Whoever sees the report and knows no more of you guesses right in at most ` +
    `${right} of ${count(cases)} cases; blind, in ${blind}.`;
  const percent = (share) => `${Number((100 * share).toPrecision(3))} %`;
  element.exact.textContent =
    `Whatever is sent would be at most ${Number(times.toPrecision(3))} times as likely under this ` +
    `answer as under any other (ε = ${epsilon}). Whoever sees the report and holds all ${count(d)} ` +
    `answers to be equally likely guesses right in ${percent(attackerSuccessRate(round))} of ` +
    `cases; blind, in ${percent(1 / d)}. Who knows more of you guesses better.`;
  element.privacy.hidden = false;
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
  element.question.textContent = round.question ?? document.title;
  if (round.question && round.title) {
    element.title.textContent = round.title;
    element.title.hidden = false;
  }
  element.practice.hidden = !round.practice;
  promise(round);
  const entry = (await reader.ledger.entries()).find((each) => each.roundId === round.id);
  if (entry && entry.state !== "pending") {
    status.textContent = REPORTED;
    return;
  }
  const isTooHigh = !round.practice && round.epsilon > MAX_EPSILON;
  if (!entry && (isTooHigh || (await isClosed(round)))) {
    element.promise.textContent = isTooHigh
      ? `This round asks for ε = ${round.epsilon}. This survey sends no report above ${MAX_EPSILON}.`
      : "This round is closed: it takes no more reports.";
    element.privacy.hidden = true;
    return;
  }
  if (entry)
    status.textContent = "Your report has not arrived yet: press again to send the same one.";
  // A class has few people, so its rounds need a large epsilon, and one browser answers several.
  const unlimited = { maxTotalEpsilon: Infinity };
  const limits = round.practice
    ? { maxEpsilon: Infinity, ledger: new Ledger(browserStore(), unlimited) }
    : {};
  const chooser = choices(round.items);
  const ticket = round.access === "ticket" ? ticketField() : null;
  form.hidden = false;
  form.addEventListener("change", () => complain(chooser.input, element.fault, ""));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const item = chooser.value();
    const sent = ticket?.input.value.trim() || (ticket ? null : query.get("ticket"));
    const isMissing = ticket && !entry && !sent;
    if (ticket) complain(ticket.input, ticket.fault, isMissing ? "Enter your ticket." : "");
    complain(chooser.input, element.fault, item === null ? chooser.fault : "");
    if (item === null || isMissing) return;
    status.textContent = "Reporting.";
    try {
      await new Reporter(server, name, { ticket: sent, ...limits }).report(item);
      status.textContent = round.thanks ?? "Thank you: your report is counted.";
    } catch (error) {
      status.textContent = message(error);
    }
  });
}

start().catch((error) => {
  element.promise.textContent = message(error);
});
