// A form: what its draw means, and its rounds as cards with their accuracy by their reports and by equal numbers.

import { formPath, get, isAbort, onKey, poll, roundPath, sentenceOf } from "../api.js";
import { downloadCsv } from "../chart/csv.js";
import { action, fill, h, notice } from "../dom.js";
import { count, number, plural, points, since } from "../format.js";
import { help } from "../help.js";
import { failure } from "../key.js";
import { go } from "../router.js";
import { surveyCard } from "../round/fresh.js";
import { actionsMenu, asked } from "../round/header.js";
import { WIDE } from "../round/items.js";
import { card, epsilonOf, summed } from "./rounds.js";

const SECONDS = 3;
const COLUMNS = ["Question", "Item", "As collected", "Collected ±"];
const SHARE = 0.05; // of malicious reports, for an example
const TIES = [
  "Of a used ticket the server stores what any round's ticket leaves: a hash of it with its round, and a digest of its perturbed report, salted with the ticket.",
  "So whoever holds a ticket, or handed it out, can find its question and its perturbed report, as can whoever polls public results while a person reports; ε bounds what these tell.",
];
const BY_TICKETS =
  "Each person answers one question, which their ticket draws: nobody can choose it, so on average attackers gain in one question no more than in a round without a form.";
const byClients = (k) =>
  `Each person answers one question, which their client draws: attackers can put all reports into one question and gain up to ${k} times as much there, k/(1+\u2060(k−1)β) times with a share β of all reports, ${number(k / (1 + (k - 1) * SHARE))} times with 5\u00a0%.`;

export async function show({ main, path: [id], signal }) {
  let form = summed(await get(formPath(id), { signal }));
  document.title = `${form.name} – LDPRecover`;
  const { name, rounds } = form;
  const state = h("span", {});
  const reports = h("p", { class: "lead" });
  const said = h("div", {});
  const saved = h("div", {});
  const cards = rounds.map((round) => questionCard(round));
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
      ),
      actionsMenu(() => form, done),
      asked(form),
    ),
    said,
    reports,
    rounds.length > 1 && h("p", {}, isOfClients ? byClients(rounds.length) : BY_TICKETS),
    !isOfClients && h("p", { class: "quiet" }, TIES.join(" ")),
    h("div", { class: "row" }, download),
    saved,
    h(
      "p",
      { class: "quiet" },
      "± is the 95 % interval of an average share among all people of the form, if all reports are honest. Errors in the CSV are about all people of the form, too.",
    ),
    h(
      "ul",
      { class: "ways plain" },
      cards.map((each) => each.root),
    ),
    survey,
  );

  async function save() {
    download.disabled = true;
    fill(saved);
    try {
      const rows = [];
      for (const round of rounds) {
        const { items, ...estimates } = await get(roundPath(round.id, "frequencies"), { signal });
        const { frequencies, standard_errors: errors } = estimates;
        for (const [i, item] of items.entries())
          rows.push([round.question, item, frequencies?.[i], errors && WIDE * errors[i]]);
      }
      const columns = COLUMNS.map((title, k) => ({ title, value: (row) => row[k] }));
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
        fill(said);
        const share = form.n / rounds.length;
        state.textContent = since(form);
        reports.textContent = `${plural(form.n, "report")} in all, ${count(share)} for each question on average.`;
        if (survey) survey.hidden = form.state === "closed";
        form.rounds.forEach((round, k) => cards[k].set(round, share, rounds.length));
      } catch (error) {
        if (!isAbort(error)) fill(said, notice("bad", sentenceOf(error)));
      }
    },
    SECONDS,
    signal,
  );
  onKey(again, signal);
}

/** The card of one of k questions; `set(round, share, k)` updates it, where `share` is N/k. */
function questionCard(first) {
  const { root, set } = card(first);
  const accuracy = h("p", { class: "quiet" });
  root.append(accuracy);
  return {
    root,
    set(round, share, k) {
      set(round);
      const before = margin(round, share, k);
      const after = margin(round, round.n, k);
      accuracy.hidden = before === null;
      accuracy.textContent = `${after ? `${after} with its ${plural(round.n, "report")}; ` : ""}${before} if all questions had equally many`;
    },
  };
}

/**
 * Half the 95 % interval of a share f = 1/d, from the variance of Lemma 2 and that of drawing n people for one of k
 * questions, (1 - 1/k) f(1 - f)/n; null without reports or p and q.
 */
function margin({ p, q, domain_size: d }, n, k) {
  if (!n || p === null) return null;
  const noise = (q * (1 - q)) / (p - q) ** 2 + (1 - p - q) / (d * (p - q));
  const variance = noise + ((1 - 1 / k) * (1 - 1 / d)) / d;
  return `±\u00a0${points(WIDE * Math.sqrt(variance / n))}`;
}
