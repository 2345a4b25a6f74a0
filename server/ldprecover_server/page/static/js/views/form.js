// A form: a chart for each question with its verdict and what it found, and one CSV of all.

import { formPath, get, isAbort, onKey, poll, post, roundPath, sentenceOf } from "../api.js";
import { downloadCsv } from "../chart/csv.js";
import { action, field, fill, h, notice } from "../dom.js";
import { count, isolated, number, plural, since } from "../format.js";
import { help } from "../help.js";
import { failure } from "../key.js";
import { go, link, setQuery } from "../router.js";
import { surveyCard } from "../round/fresh.js";
import { actionsMenu, asked, inSeries } from "../round/header.js";
import { WIDE, errorBars, isBlurred, itemsChart } from "../round/items.js";
import { read } from "../round/settings.js";
import {
  BLURRED,
  VERDICTS,
  isSeen,
  maliciousShare,
  noiseVerdict,
  verdictOf,
  withoutNoise,
} from "../round/verdict.js";
import { epsilonOf, summed } from "./rounds.js";

const SECONDS = 3;
const GROWTH = 1.1; // the best estimate is worked out again after a tenth more reports
const COLUMNS = ["question", "item", "recovered", "frequency", "standard_error"];
const SHARE = 0.05; // of malicious reports, for an example
const NO_CHART = 0.5; // half a 95 % interval from which on a chart tells nothing
const UNTESTED = {
  attack: "untested",
  malicious_share: null,
  least_malicious_share: null,
};
const BY_TICKETS =
  "A ticket draws each person's question, so nobody can choose it. Whoever holds several tickets can still answer one question alone, and is then a larger share of its answers than of all.";
const byClients = (k) =>
  `Each device draws its question, so attackers can answer one question alone: 5\u00a0% of all answers are then ${percent((k * SHARE) / (1 + (k - 1) * SHARE))} of that question's.`;
const percent = (share) => `${number(100 * share, 2)}\u00a0%`;

export async function show({ main, path: [id], query, signal }) {
  let form = summed(await get(formPath(id), { signal }));
  document.title = `${form.name} – LDPRecover`;
  const { name, rounds } = form;
  const state = h("span", {});
  const reports = h("p", { class: "lead" });
  const few = h("p", { hidden: true }, `${BLURRED}.`);
  const response = h("p", { role: "status" });
  const said = h("div", {});
  const saved = h("div", {});
  const questions = rounds.map((round) => questionPanel(round, signal));
  const isOfClients = form.assign === "client";
  const survey =
    isOfClients &&
    rounds.every((round) => round.access === "open") &&
    surveyCard(
      `form=${encodeURIComponent(name)}`,
      Math.max(...rounds.map((round) => round.epsilon)),
    );
  const done = (what) => (what === "close" ? again() : signal.aborted || go(["rounds"]));
  const download = action("Download CSV", save);
  const people = h("input", {
    type: "number",
    min: 1,
    step: 1,
    value: query.get("asked") ?? "",
  });
  people.addEventListener("input", () => {
    setQuery({ asked: people.value });
    showResponse();
  });
  fill(
    main,
    h(
      "header",
      { class: "title" },
      h("h1", {}, name),
      h(
        "p",
        { class: "quiet" },
        "Form ",
        help("form"),
        ` · ${plural(rounds.length, "question")} · ${epsilonOf(form)} `,
        help("epsilon"),
        " · ",
        state,
        inSeries(rounds[0]),
      ),
      actionsMenu(() => form, done),
      asked(form),
    ),
    said,
    reports,
    few,
    h(
      "ul",
      { class: "questions plain" },
      questions.map((each) => each.root),
    ),
    h("div", { class: "row" }, download),
    saved,
    h("h2", {}, "Who answered"),
    h(
      "div",
      { class: "controls" },
      field(isOfClients ? "People asked" : "Tickets handed out", people),
      response,
    ),
    rounds.length > 1 &&
      h("p", {}, isOfClients ? byClients(rounds.length) : BY_TICKETS, " ", help("share", "β")),
    !isOfClients && h("p", {}, "Who can find an answer? ", help("ties", "who can find an answer")),
    survey,
  );

  function showResponse() {
    const all = Number(people.value);
    const [one, many] = isOfClients ? ["person", "people"] : ["ticket", "tickets"];
    let rate = "The server does not know how many did not answer.";
    if (all >= form.n && all > 0)
      rate = `${plural(form.n, "answer")} from ${plural(all, one, many)} (${percent(form.n / all)}).`;
    else if (all > 0) rate = `There are more answers than that: ${count(form.n)}.`;
    response.textContent = `${rate} The shares are of those who answered; the others may differ.`;
  }

  async function save() {
    download.disabled = true;
    fill(saved);
    try {
      const rows = [];
      for (const [k, round] of rounds.entries()) {
        const { items, ...estimates } = await get(roundPath(round.id, "frequencies"), { signal });
        const { frequencies, standard_errors: errors } = estimates;
        const best = questions[k].best()?.recovered;
        for (const [i, item] of items.entries())
          rows.push([round.question, item, best?.[i], frequencies?.[i], errors?.[i]]);
      }
      const columns = COLUMNS.map((title, k) => ({
        title,
        value: (row) => row[k],
      }));
      downloadCsv(`${name}-frequencies`, columns, rows);
    } catch (error) {
      if (!isAbort(error)) fill(saved, failure(error));
    }
    download.disabled = false;
  }

  const again = poll(
    async () => {
      try {
        form = summed(await get(formPath(form.id), { signal }));
        state.textContent = since(form);
        reports.textContent = `${plural(form.n, "answer")}: each person answers one of ${plural(rounds.length, "question")}.`;
        showResponse();
        if (survey) survey.hidden = form.state === "closed";
        for (const [k, round] of form.rounds.entries()) await questions[k].set(round);
        const isTooFew = form.n > 0 && questions.every((each) => each.isTooFew());
        for (const each of questions) each.setQuiet(isTooFew);
        few.hidden = !isTooFew;
        fill(said);
      } catch (error) {
        if (!isAbort(error)) fill(said, failure(error));
      }
    },
    SECONDS,
    signal,
  );
  onKey(again, signal);
}

/** The chart of a question with its verdict; `set(round)` updates it, and reads what is new. */
function questionPanel({ id, name, question }, signal) {
  const light = h("p", { class: "light" });
  const finding = h("p", { class: "lead" });
  const attack = h("p", {});
  const place = h("div", {});
  const root = h(
    "li",
    { class: "round" },
    h("h2", {}, h("bdi", {}, question)),
    finding,
    light,
    attack,
    place,
    h("p", {}, h("a", { href: link(["rounds", name]) }, `Methods and tests of ${name}`)),
  );
  let chart = null;
  let estimates = null;
  let best = null;
  let drawn = null; // the verdict that is shown
  let settings = null;
  let isTooFew = false;

  async function set(round) {
    const isNew = estimates?.n !== round.n;
    if (!isNew && drawn === JSON.stringify(round.verdict)) return;
    if (isNew) estimates = await get(roundPath(id, "frequencies"), { signal });
    if (round.n && !chart) {
      const whole = await get(roundPath(id), { signal });
      settings = read(new URLSearchParams(), whole.items.length);
      const redraw = () => draw(round);
      chart = itemsChart(whole, settings, signal, () => {}, redraw, "Share of those who answered");
      fill(place, chart.root);
    }
    draw(round);
    if (round.n && !(best && round.n < GROWTH * best.n && round.state === "open")) {
      try {
        best = await post(roundPath(id, "recover"), { method: "auto" }, { signal });
      } catch (error) {
        if (isAbort(error)) throw error;
        fill(attack, notice("bad", sentenceOf(error)));
        return;
      }
      draw(round);
    }
    drawn = JSON.stringify(round.verdict);
  }

  function draw(round) {
    if (!round.n) {
      light.textContent = "No answers yet";
      isTooFew = true;
      return;
    }
    const { bar } = errorBars(estimates, best);
    const isUnranked = isBlurred(estimates) || bar >= NO_CHART;
    const verdict = round.verdict ?? (best ? verdictOf(best, null, false) : UNTESTED);
    const { text, kind } = noiseVerdict(verdict, isUnranked) ?? VERDICTS[verdict.attack];
    isTooFew = text === BLURRED;
    const malicious = isSeen(verdict) && maliciousShare(verdict);
    root.className = `round ${kind}`;
    const isOlder = verdict.reports < round.n;
    const parts = [
      `● ${text}`,
      malicious && `${malicious} malicious`,
      isOlder && `tested at ${count(verdict.reports)}`,
    ];
    light.textContent = parts.filter(Boolean).join(", ");
    place.hidden = bar >= NO_CHART;
    const isQualified = isSeen(verdict) || verdict.attack === "cannot_be_seen";
    const [caveat] = (isQualified && (verdict.sentences ?? best?.conclusions?.sentences)) || [""];
    finding.textContent = isUnranked ? "" : found(estimates, best);
    attack.textContent = isTooFew ? "" : withoutNoise(caveat);
    chart.draw({
      estimates,
      best,
      recovered: [],
      certified: undefined,
      pending: false,
      truth: null,
      raised: verdict.raised ?? [],
      suspicion: () => 0,
      mayChoose: false,
    });
  }

  /** Say what holds for all questions once, above them. */
  const setQuiet = (isQuiet) => (light.hidden = isQuiet);
  return { root, set, setQuiet, best: () => best, isTooFew: () => isTooFew };
}

/** What a question found: its first item, if the 95 % intervals tell it from the second. */
function found({ items, frequencies, standard_errors: errors }, best) {
  const shares = best?.recovered ?? frequencies;
  const { lower, upper } = best?.conclusions ?? {};
  const half = (i) => (lower ? (upper[i] - lower[i]) / 2 : WIDE * errors[i]);
  const [a, b] = shares.map((_, i) => i).sort((i, j) => shares[j] - shares[i]);
  const named = (i) => `${isolated(items[i])} ${percent(shares[i])}`;
  if (shares[a] - shares[b] < Math.hypot(half(a), half(b)))
    return `Too close to tell which is first: ${named(a)}, ${named(b)}.`;
  return `Most frequent: ${named(a)} (±\u00a0${number(100 * half(a), 2)} points at 95\u00a0%), then ${named(b)}.`;
}
