// A survey of one question, of a round or drawn from a form, on any web server:
//
//     survey.html?server=https://reports.example.org&round=lunch
//     survey.html?server=https://reports.example.org&form=usage
//
// The server must list the page's origin in LDPRECOVER_CORS_ORIGINS; without one it is that of the
// page, at page/survey.html?round=lunch. With &shuffle each visitor sees the answers in an order
// drawn at random. A ticket may follow, where no server logs it: #ticket=….
import { ArgumentError, Ledger, LedgerError, UnansweredError } from "../ldprecover.js";
import { MAX_EPSILON, MAX_TOTAL_EPSILON, Reporter, Retries, browserStore } from "../ldprecover.js";
import { attackerSuccessRate } from "../src/protocols.js";
import { isReference } from "../src/rounds.js";
import { shuffled, wordsFrom } from "../src/words.js";
import { combobox } from "./combobox.js";

const RADIOS = 14; // items; more are searched
const PATIENCE = 5000; // milliseconds without an answer
const query = new URLSearchParams(`${location.search}&${location.hash.slice(1)}`);
const element = {};
for (const each of document.querySelectorAll("[id]")) element[each.id] = each;
const { form, status } = element;

const make = (tag, properties) => Object.assign(document.createElement(tag), properties);

function choice(label) {
  // The value is the label: an index would mean a number in a round for numbers.
  const input = make("input", { type: "radio", name: "item", value: label });
  input.setAttribute("aria-describedby", "fault");
  const line = make("label");
  line.append(input, make("bdi", { textContent: label, lang: "" }));
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

// The address of another ticket loads nothing by itself.
addEventListener("hashchange", () => location.reload());

const NO_TICKET = "Enter your ticket.";
const CLOSED = "This survey is closed: it takes no more reports.";
const OTHERS = "Another person takes a private window or another browser.";
const REPORTED = `This browser has reported already. A second report would tell more of you. ${OTHERS}`;
const RESENT = "The report made earlier in this browser is counted, and no new answer. ";
const ELSEWHERE = `With a ticket for another question take a private window. ${OTHERS}`;
const OTHER_QUESTION = "This ticket is for another question of this survey.";
const GONE = "There is no survey under this link: it is not whole, or the survey is gone.";

/** Sentences for users, by the slug of a problem, what an error needs, or its name. */
const SENTENCES = {
  "form-not-found": GONE,
  "idempotency-key-reused": "This ticket was used already, for another report. Enter another one.",
  "invalid-ticket": "This is no ticket of this survey. Check it, or ask for another one.",
  "round-not-found": GONE,
  forbidden: OTHER_QUESTION,
  ticket: OTHER_QUESTION,
  AccessError: "This survey takes no tickets: open its link without one.",
  AlreadyReportedError: REPORTED,
  ArgumentError: "This ticket is not whole: a ticket must be 22 characters, a dot, and 22 more.",
  EpsilonSpentError: `Earlier reports of this browser tell as much of you as it allows. ${OTHERS}`,
  InvalidAnswerError: "No server of this survey answers here. Check the link and your connection.",
  LedgerError: "This browser stores no data now. Reload the page to see whether you reported.",
  UnansweredError: "The server does not answer. Look at your connection, and press again later.",
};

const message = (error) =>
  [error.slug, error.needs, error.name].map((each) => SENTENCES[each]).find(Boolean) ??
  error.message.replace(/[^.!?]$/, "$&.");

/** The sentence for an error before the form is there. */
function obstruction(error) {
  if (error instanceof ArgumentError) return `This link does not work: ${error.message}.`;
  if (error instanceof LedgerError)
    return "A report needs a browser that stores data for this page: allow that, or take another.";
  if (!(error instanceof UnansweredError) || error.status) return message(error);
  if (new URL(server).origin === location.origin)
    return `The server does not answer: ${server}. It may have stopped, or the connection is gone.`;
  return (
    `The server does not answer this page: ${server}. It may have stopped; or it does not allow ` +
    `calls from ${location.origin}, which its operator must list in LDPRECOVER_CORS_ORIGINS (CORS).`
  );
}

/** Say what happens to the report, and the operator's thanks. */
function say(text, thanks = "") {
  status.replaceChildren(text, make("span", { textContent: thanks, dir: "auto", lang: "" }));
  status.scrollIntoView({ block: "nearest" });
}

/**
 * Say how far a report protects its user. No report of any epsilon-private protocol is guessed more
 * often than e^epsilon/(e^epsilon + d - 1), where all d answers are equally likely before.
 */
function promise(round, survey) {
  const { access, epsilon, d } = round;
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
    `${replaced} If all answers are equally likely, whoever sees the report guesses right in at ` +
    `most ${right} of ${count(cases)} cases; blind, in ${blind}.`;
  const percent = (share) => `${Number((100 * share).toPrecision(3))} %`;
  const question = survey ? ", and with which question" : "";
  const tickets =
    `The server stores which tickets reported${question}: whoever gave you yours may find out the ` +
    "report, as chance has changed it.";
  element.exact.textContent =
    `Whatever is sent would be at most ${Number(times.toPrecision(3))} times as likely under this ` +
    `answer as under any other (ε = ${epsilon}). Whoever sees the report and holds all ${count(d)} ` +
    `answers to be equally likely guesses right in ${percent(attackerSuccessRate(round))} of ` +
    `cases; blind, in ${percent(1 / d)}. Who knows more of you guesses better. ` +
    (access === "ticket" ? tickets : "");
  element.privacy.hidden = false;
  if (!survey || survey.rounds.length === 1) return;
  element.draw.textContent =
    `This is one of ${survey.rounds.length} questions. ` +
    `${survey.assign === "ticket" ? "Your ticket" : "This device"} drew it, and you answer no ` +
    `other: this form costs you ε = ${epsilon} in all.`;
  element.draw.hidden = false;
}

/** Whether the server says that a round is closed. A server that cannot say will refuse the report. */
async function isClosed({ id }) {
  const answer = fetch(new URL(`rounds/${id}`, `${server.replace(/\/+$/, "")}/`));
  const state = answer.then((response) => response.json()).then((fields) => fields.state);
  return (await state.catch(() => null)) === "closed";
}

/** Whether a round is for practice, in a page over plain http: over https it could be anybody's. */
const isPractice = (round) => round.practice && !crypto.subtle;

/** Return why a new report cannot be made, or null. */
async function obstacle(round, spent) {
  const { access, epsilon } = round;
  const practice = isPractice(round);
  const total = Number((spent + epsilon).toPrecision(12));
  if (access === "key") return "This round takes reports from programs with a key, not from here.";
  if (!practice && epsilon > MAX_EPSILON)
    return `This round asks for ε = ${epsilon}. This survey sends no report above ${MAX_EPSILON}.`;
  if (!practice && total > MAX_TOTAL_EPSILON)
    return `${SENTENCES.EpsilonSpentError} (The total ε would be ${total}, above ${MAX_TOTAL_EPSILON}.)`;
  return (await isClosed(round)) ? CLOSED : null;
}

/** Return the round that is drawn for a form; ask for its ticket if the link has none that draws. */
async function drawnRound(survey, ticket, reporterWith) {
  const attempt = async (missing) => {
    const entered = ticket?.input.value.trim() || null;
    const fault = (text) => complain(ticket.input, ticket.fault, text);
    let reporter;
    try {
      reporter = reporterWith(entered);
    } catch (error) {
      return fault(message(error)); // the ticket is not whole
    }
    return reporter.round().catch((error) => {
      if (error.needs !== "ticket") throw error;
      return fault(entered ? message(error) : missing);
    });
  };
  const known = await attempt("");
  if (known) return known;
  Object.assign(element.question, { textContent: survey.title ?? document.title, lang: "" });
  if (await isClosed(survey.rounds[0])) throw Error(CLOSED);
  element.promise.textContent = `Your ticket draws one of ${survey.rounds.length} questions for you.`;
  const { textContent } = element.send;
  element.send.textContent = "Show the question";
  form.hidden = false;
  const round = await new Promise((resolve) => {
    form.onsubmit = async (event) => {
      event.preventDefault();
      say("");
      const drawn = await attempt(NO_TICKET).catch((error) => say(obstruction(error)));
      if (drawn) resolve(drawn);
    };
  });
  complain(ticket.input, ticket.fault, "");
  form.hidden = true; // else Enter would send it before the next listener is there
  form.onsubmit = null;
  element.send.textContent = textContent;
  element.question.focus();
  return round;
}

async function start() {
  element.promise.textContent = "Asking the server what it collects.";
  const name = query.get("form") ?? query.get("round") ?? "current";
  if (!isReference(name)) throw Error(GONE);
  const target = query.has("form") ? { form: name } : name;
  const ledger = new Ledger(browserStore());
  const retries = new Retries({ total: 5 });
  const reporterWith = (ticket) => new Reporter(server, target, { ledger, retries, ticket });
  const reader = reporterWith(null);
  const survey = await reader.form();
  let ticket = survey?.assign === "ticket" ? ticketField() : null;
  const isNew = survey && !(await ledger.entries()).some((each) => each.formId === survey.id);
  const round = await (isNew ? drawnRound(survey, ticket, reporterWith) : reader.round());
  const title = survey?.title ?? round.title;
  document.title = title ?? round.question ?? document.title;
  Object.assign(element.question, { textContent: round.question ?? document.title, lang: "" });
  if (round.question && title)
    Object.assign(element.title, { textContent: title, lang: "", hidden: false });
  element.practice.hidden = !isPractice(round);
  promise(round, survey);
  const find = async () => (await ledger.entries()).find((each) => each.roundId === round.id);
  let entry = await find();
  const reason = entry ? null : await obstacle(round, await ledger.spent());
  if (reason) throw Error(reason);
  const chooser = choices(round.items);
  if (round.access === "ticket") ticket ??= ticketField();
  const ticketSent = () => (ticket ? ticket.input.value.trim() : query.get("ticket")) || null;

  /** Show what the ledger's entry lets the user do, after a sentence of what went wrong. */
  async function show(sentence) {
    entry = await find();
    element.items.hidden = Boolean(entry);
    form.hidden = element.items.hidden && entry.state !== "pending";
    if (!entry) return say(sentence);
    if (form.hidden) {
      const rejected = `The server rejected the report of this browser: ${entry.reason}.`;
      const late = "This survey is closed, and the report of this browser is not counted.";
      return say(entry.state === "accepted" ? REPORTED : (await isClosed(round)) ? late : rejected);
    }
    element.send.textContent = "Send the kept report";
    const needsSame = round.form && ticket && !entry.openTries;
    const which = entry.openTries ? "its first" : "this";
    let under = ticketSent() === entry.ticket ? "" : `, under ${which} ticket`;
    if (needsSame) under = ", but only under a ticket for the same question";
    const others = needsSame ? ELSEWHERE : OTHERS;
    const kept = sentence || "A report made earlier in this browser has not arrived.";
    return say(`${kept} The button sends the kept report${under}, and no new answer. ${others}`);
  }

  /** Throw if a form's ticket is for another question, or a form that has no report is closed. */
  async function check() {
    if (survey && !entry && (await isClosed(round))) throw Error(CLOSED);
    // While a try is open the kept report goes out under its first ticket.
    if (survey && ticket && !entry?.openTries) await reporterWith(ticketSent()).round();
  }

  form.addEventListener("change", () => complain(chooser.input, element.fault, ""));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const item = entry ? round.items[0] : chooser.value(); // a kept report ignores it
    const sent = ticketSent();
    const isMissing = ticket && !entry && !sent;
    if (ticket) complain(ticket.input, ticket.fault, isMissing ? NO_TICKET : "");
    complain(chooser.input, element.fault, item === null ? chooser.fault : "");
    if (item === null || isMissing) return;
    say("Reporting.");
    const wait = setTimeout(say, PATIENCE, "Reporting. No answer yet: this page tries again.");
    // A class has few people, so its rounds need a large epsilon, and one browser answers several.
    // If a kept report is gone meanwhile, no other is made.
    const limits = isPractice(round) ? [Infinity, Infinity] : [MAX_EPSILON, MAX_TOTAL_EPSILON];
    const [maxEpsilon, total] = limits;
    const limit = { maxTotalEpsilon: entry ? Number.MIN_VALUE : total };
    const options = { ticket: sent, maxEpsilon, ledger: new Ledger(browserStore(), limit) };
    try {
      await check();
      const receipt = await new Reporter(server, survey ? round.id : target, options).report(item);
      form.hidden = true;
      const thanks = round.thanks ? "" : "Thank you: your report is counted.";
      say(receipt.resent ? RESENT : thanks, round.thanks);
      status.focus();
    } catch (error) {
      await show(message(error));
    } finally {
      clearTimeout(wait);
    }
  });
  await show(entry ? await check().then(() => "", message) : "");
}

start().catch((error) => {
  element.promise.textContent = obstruction(error);
  for (const each of [element.draw, element.privacy, form]) each.hidden = true;
});
