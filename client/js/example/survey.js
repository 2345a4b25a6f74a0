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
import { privacyNumbers } from "../src/privacy.js";
import { isReference } from "../src/rounds.js";
import { shuffled, wordsFrom } from "../src/words.js";
import { combobox } from "./combobox.js";
import { phrase, speak } from "./language.js";
import { preview } from "./preview.js";

const RADIOS = 14; // items; more are searched
const PATIENCE = 5000; // milliseconds without an answer
const query = new URLSearchParams(`${location.search}&${location.hash.slice(1)}`);
const element = {};
for (const each of document.querySelectorAll("[id]")) element[each.id] = each;
const { form, status } = element;

const make = (tag, properties) => Object.assign(document.createElement(tag), properties);

/** Show a text of the operator's, in the language of the round, or an unknown one. */
const showText = (place, textContent, language) =>
  Object.assign(place, { textContent, lang: language ?? "", hidden: !textContent });

function choice(label, lang) {
  // The value is the label: an index would mean a number in a round for numbers.
  const input = make("input", { type: "radio", name: "item", value: label });
  input.setAttribute("aria-describedby", "fault");
  const line = make("label");
  line.append(input, make("bdi", { textContent: label, lang }));
  return line;
}

/** Show what users choose from; return the first control and a function that reads the choice. */
function choices({ items, language }) {
  const isShuffled = query.has("shuffle");
  const labels = isShuffled ? shuffled(items, wordsFrom(crypto)) : items;
  const lang = language ?? "";
  const textContent = isShuffled ? phrase("shuffled") : "";
  const note = make("p", { className: "order", textContent, hidden: !isShuffled });
  if (labels.length <= RADIOS) {
    const fieldset = make("fieldset");
    const legend = make("legend", { textContent: phrase("answer") });
    fieldset.append(legend, note, ...labels.map((each) => choice(each, lang)));
    element.items.append(fieldset);
    return {
      input: fieldset.querySelector("input"),
      value: () => new FormData(form).get("item"),
      fault: phrase("choose"),
    };
  }
  const box = combobox(labels, lang);
  box.input.setAttribute("aria-describedby", "suggested fault");
  element.items.append(note, box.root);
  return { ...box, fault: phrase("pick") };
}

/** The field for a ticket, hidden while the link has one; a report may go under its first one. */
function ticketField() {
  const input = make("input", {
    name: "ticket",
    autocomplete: "off",
    spellcheck: false,
    dir: "ltr",
  });
  input.value = query.get("ticket") ?? "";
  input.setAttribute("aria-describedby", "ticket-fault");
  const line = make("label", { hidden: Boolean(input.value) });
  line.append(phrase("ticket"), input);
  const fault = make("p", { id: "ticket-fault", className: "fault" });
  element.fault.after(line, fault);
  return { input, line, fault };
}

/** Take the ticket out of the address, where the history or a picture of the page would show it. */
function forgetTicket() {
  const address = new URL(location.href);
  const fragment = new URLSearchParams(address.hash.slice(1));
  for (const each of [address.searchParams, fragment]) each.delete("ticket");
  address.hash = fragment;
  history.replaceState(history.state, "", address);
}

/** Say under a field what is missing, and go there; an empty text takes that back. */
function complain(input, place, text) {
  place.textContent = text;
  if (text) input.setAttribute("aria-invalid", "true");
  else input.removeAttribute("aria-invalid");
  if (!text) return;
  const line = input.closest("label") ?? input;
  line.hidden = false;
  input.focus({ preventScroll: true });
  line.scrollIntoView({ block: "nearest" });
}

const root = new URL(document.documentElement.dataset.server ?? "/", location.href).href;
const server = query.get("server") ?? root;

// The address of another ticket loads nothing by itself.
addEventListener("hashchange", () => location.reload());

/** Keys of sentences, by the slug of a problem, what an error needs, or its name. */
const SENTENCES = {
  "form-not-found": ["gone"],
  "idempotency-key-reused": ["usedTicket"],
  "invalid-ticket": ["unknownTicket"],
  "round-not-found": ["gone"],
  forbidden: ["otherQuestion"],
  ticket: ["otherQuestion"],
  AccessError: ["noTickets"],
  AlreadyReportedError: ["reported", "others"],
  ArgumentError: ["partTicket"],
  EpsilonSpentError: ["spent", "others"],
  InvalidAnswerError: ["noServer"],
  LedgerError: ["noData"],
  UnansweredError: ["noReply"],
};

const phrases = (...keys) => keys.map((key) => phrase(key)).join(" ");

function message(error) {
  const keys = [error.slug, error.needs, error.name].map((each) => SENTENCES[each]).find(Boolean);
  return keys ? phrases(...keys) : error.message.replace(/[^.!?)]$/, "$&.");
}

/** The sentence for an error before the form is there. */
function obstruction(error) {
  if (error instanceof ArgumentError)
    return isSecureContext ? phrase("badLink", { reason: error.message }) : phrase("insecure");
  if (error instanceof LedgerError) return phrase("needsData");
  if (!(error instanceof UnansweredError) || error.status) return message(error);
  const { origin } = location;
  const key = new URL(server).origin === origin ? "silent" : "silentToPage";
  return phrase(key, { server, origin });
}

/** Say what happens to the report, and the operator's thanks. */
function say(text, thanks = "", lang = "") {
  status.replaceChildren(text, make("span", { textContent: thanks, dir: "auto", lang }));
  if (text) status.scrollIntoView({ block: "nearest" });
}

/** Say how far a report protects its user. */
function promise(round, survey) {
  const { access, d: count, epsilon, protocol } = round;
  const numbers = privacyNumbers(round);
  const sentence = (key) => phrase(key, { ...numbers, count, epsilon });
  const isForm = survey && survey.rounds.length > 1;
  const isOfTickets = access === "ticket";
  const changed = phrase(numbers.most < 0.8 ? "changed" : "rarelyChanged");
  // Reports of other protocols are no answers.
  element.promise.textContent = `${changed} ${sentence(protocol === "grr" ? "true" : "guessed")}`;
  const parts = [sentence("exact")];
  if (isForm) parts.push(sentence("form"));
  if (isOfTickets) parts.push(phrase(survey ? "ticketsOfForm" : "tickets"));
  element.exact.textContent = parts.join(" ");
  element.privacy.hidden = false;
  if (!isForm) return;
  const key = survey.assign === "ticket" ? "drawnByTicket" : "drawnByDevice";
  element.draw.textContent = phrase(key, { questions: survey.rounds.length });
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
  if (access === "key") return phrase("programs");
  if (!practice && epsilon > MAX_EPSILON) return phrase("tooMuch", { epsilon, limit: MAX_EPSILON });
  if (!practice && total > MAX_TOTAL_EPSILON)
    return `${phrases("spent", "others")} ${phrase("total", { total, limit: MAX_TOTAL_EPSILON })}`;
  return (await isClosed(round)) ? phrase("closed") : null;
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
  const { rounds, title } = survey;
  if (title) showText(element.question, title, rounds[0].language);
  if (await isClosed(rounds[0])) throw Error(phrase("closed"));
  element.lead.textContent = phrase("draws", { questions: rounds.length });
  element.send.textContent = phrase("show");
  form.hidden = false;
  const round = await new Promise((resolve) => {
    form.onsubmit = async (event) => {
      event.preventDefault();
      say("");
      const drawn = await attempt(phrase("noTicket")).catch((error) => say(obstruction(error)));
      if (drawn) resolve(drawn);
    };
  });
  complain(ticket.input, ticket.fault, "");
  form.hidden = true; // else Enter would send it before the next listener is there
  form.onsubmit = null;
  element.question.focus({ preventScroll: true });
  return round;
}

/** Speak the language of a survey, else the browser's, and show what is the same in all surveys. */
async function speakFor(language) {
  if (!(await speak([language, ...navigator.languages]))) return;
  document.title = phrase("survey");
  showText(element.question, phrase("survey"), document.documentElement.lang);
  element.lead.textContent = phrase("loading");
  element.how.textContent = phrase("how");
}

/** Show a survey that is not open, with a link to its next question; return where it is kept. */
async function showPreview() {
  const { store, number, questions } = await preview(query);
  const address = new URLSearchParams(location.hash.slice(1));
  address.set("question", (number % questions) + 1);
  const textContent = phrase("next", { number, questions });
  const next = make("a", { href: `#${address}`, textContent });
  const line = make("p", { className: "preview", textContent: `${phrase("preview")} ` });
  if (questions > 1) line.append(next);
  document.querySelector("main").prepend(line);
  return store;
}

async function start() {
  await speakFor(null);
  const store = query.has("preview") ? await showPreview() : browserStore();
  const name = query.get("form") ?? query.get("round") ?? "current";
  if (!isReference(name)) throw Error(phrase("gone"));
  const target = query.has("form") ? { form: name } : name;
  const ledger = new Ledger(store);
  const retries = new Retries({ total: 5 });
  const reporterWith = (ticket) => new Reporter(server, target, { ledger, retries, ticket });
  const reader = reporterWith(null);
  const survey = await reader.form();
  if (survey) await speakFor(survey.rounds[0].language);
  let ticket = survey?.assign === "ticket" ? ticketField() : null;
  const isNew = survey && !(await ledger.entries()).some((each) => each.formId === survey.id);
  const round = await (isNew ? drawnRound(survey, ticket, reporterWith) : reader.round());
  const { language } = round;
  if (!survey) await speakFor(language);
  const title = survey?.title ?? round.title;
  const heading = round.question ?? title;
  document.title = title ?? round.question ?? document.title;
  if (heading) showText(element.question, heading, language);
  if (round.question && title) showText(element.title, title, language);
  element.practice.textContent = phrase("practice");
  element.practice.hidden = !isPractice(round);
  element.lead.textContent = "";
  element.send.textContent = phrase("send");
  promise(round, survey);
  const find = async () => (await ledger.entries()).find((each) => each.roundId === round.id);
  let entry = await find();
  const reason = entry ? null : await obstacle(round, await ledger.spent());
  if (reason) throw Error(reason);
  const chooser = choices(round);
  if (round.access === "ticket") ticket ??= ticketField();
  const ticketSent = () => (ticket ? ticket.input.value.trim() : query.get("ticket")) || null;

  /** Show what the ledger's entry lets the user do, after a sentence of what went wrong. */
  async function show(sentence) {
    entry = await find();
    element.items.hidden = Boolean(entry);
    form.hidden = element.items.hidden && entry.state !== "pending";
    if (!entry) return say(sentence);
    if (form.hidden) {
      if (entry.state === "accepted") return say(phrases("reported", "others"));
      if (await isClosed(round)) return say(phrase("late"));
      return say(phrase("rejected", { reason: entry.reason }));
    }
    element.send.textContent = phrase("sendKept");
    const needsSame = round.form && ticket && !entry.openTries;
    const isOther = ticketSent() !== entry.ticket;
    if (ticket && isOther) ticket.line.hidden = false;
    let sends = "sendsKept";
    if (isOther) sends = entry.openTries ? "underFirst" : "underThis";
    if (needsSame) sends = "underSame";
    const next = needsSame ? ["elsewhere", "others"] : ["others"];
    return say(`${sentence || phrase("kept")} ${phrases(sends, ...next)}`);
  }

  /** Throw if a form's ticket is for another question, or a form that has no report is closed. */
  async function check() {
    if (survey && !entry && (await isClosed(round))) throw Error(phrase("closed"));
    // While a try is open the kept report goes out under its first ticket.
    if (survey && ticket && !entry?.openTries) await reporterWith(ticketSent()).round();
  }

  form.addEventListener("change", () => complain(chooser.input, element.fault, ""));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const item = entry ? round.items[0] : chooser.value(); // a kept report ignores it
    const sent = ticketSent();
    const isMissing = ticket && !entry && !sent;
    if (ticket) complain(ticket.input, ticket.fault, isMissing ? phrase("noTicket") : "");
    complain(chooser.input, element.fault, item === null ? chooser.fault : "");
    if (item === null || isMissing) return;
    say(phrase("sending"));
    const wait = setTimeout(say, PATIENCE, phrase("waiting"));
    // A class has few people, so its rounds need a large epsilon, and one browser answers several.
    // If a kept report is gone meanwhile, no other is made.
    const limits = isPractice(round) ? [Infinity, Infinity] : [MAX_EPSILON, MAX_TOTAL_EPSILON];
    const [maxEpsilon, total] = limits;
    const limit = { maxTotalEpsilon: entry ? Number.MIN_VALUE : total };
    const options = { ticket: sent, maxEpsilon, ledger: new Ledger(store, limit) };
    try {
      await check();
      const receipt = await new Reporter(server, survey ? round.id : target, options).report(item);
      form.hidden = true;
      const thanks = round.thanks ? "" : phrase("thanks");
      say(receipt.resent ? `${phrase("resent")} ` : thanks, round.thanks, language ?? "");
      status.focus({ preventScroll: true });
      forgetTicket();
    } catch (error) {
      if (ticket && !(error instanceof UnansweredError)) ticket.line.hidden = false;
      await show(message(error));
    } finally {
      clearTimeout(wait);
    }
  });
  await show(entry ? await check().then(() => "", message) : "");
}

start().catch((error) => {
  element.lead.textContent = obstruction(error);
  for (const each of [element.draw, element.privacy, form]) each.hidden = true;
});
