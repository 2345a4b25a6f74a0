// What a round proves whatever malicious reports say: sentences, and the share of them that is assumed.

import { isAbort, post, roundPath, sentenceOf } from "../api.js";
import { action, announce, field, fill, h } from "../dom.js";
import { count, share as percent } from "../format.js";
import { SHARES } from "./settings.js";

const LAST = SHARES.at(-1);
const PAUSE = 200; // milliseconds between the slider's last step and the request

const USUAL = 0.01;

/**
 * Make the panel of a round's certificate. It calls `changed` with "assumptions" after a change of `settings.malicious`, and
 * with "shown" when the certificate changes. `verdict()` is the round's verdict.
 */
export function certificatePanel(round, settings, verdict, changed, signal) {
  const said = h("div", {}, h("p", { class: "quiet" }, "The reports are being certified."));
  const value = h("output", { class: "quiet" });
  const slider = h("input", {
    type: "range",
    name: "malicious",
    min: 0,
    max: SHARES.length - 1,
    step: 1,
  });
  const place = field("Share of malicious reports at most", slider);
  value.htmlFor = slider.id;
  place.append(value);
  const root = h("section", { class: "card" }, h("h3", {}, "What is proven"), said, place);
  const isOfNumbers = round.items.join() === "-1,1";
  let n = 0;
  let answer = null;
  let asked = null; // the last request as JSON, with the number of reports
  let running = null;
  let timer = 0;
  let spoken = false; // whether the next answer is the response to the viewer
  let least = null; // the proven share of malicious reports
  let refusal = null; // the sentence on it where no certificate is possible
  let assumed = settings.malicious ?? USUAL;

  slider.addEventListener("input", () => {
    assumed = settings.malicious = SHARES[slider.value];
    showShare();
    clearTimeout(timer);
    timer = setTimeout(() => {
      spoken = true;
      changed("assumptions");
    }, PAUSE);
  });
  signal.addEventListener("abort", () => clearTimeout(timer));

  function showShare() {
    slider.value = SHARES.indexOf(assumed);
    const share = `${percent(assumed)}: ${count(Math.floor(assumed * n))} of ${count(n)} reports`;
    fill(value, share);
    slider.setAttribute("aria-valuetext", share);
  }

  function assume(share) {
    [assumed, settings.malicious, spoken] = [share, share, true];
    showShare();
    slider.focus(); // the button is gone with the answer
    changed("assumptions");
  }

  function show(kind, ...children) {
    fill(said, h("div", { class: `notice ${kind}` }, children));
    if (spoken) announce(said.textContent);
    spoken = false;
  }

  function showAnswer() {
    const { answers, sentences } = answer;
    const [leader, ...others] = [...sentences.answers, sentences.bound, sentences.proven];
    show(
      answers[0].certified ? "good" : least > 0 ? "bad" : "",
      h("p", {}, h("strong", {}, leader)),
      others.map((sentence) => sentence && h("p", {}, sentence)),
      h("p", { class: "quiet" }, answer.assumption),
    );
  }

  function showError(error) {
    if (error.status === 422) {
      root.hidden = true; // the protocol has no certificate
      return;
    }
    const enough = enoughFor(error);
    show(
      "bad",
      h("p", {}, h("strong", {}, sentenceOf(error))),
      enough === undefined
        ? action("Try again", again, { class: "small" })
        : enough &&
            action(`Assume at most ${percent(enough)}`, () => assume(enough), { class: "small" }),
    );
  }

  function again() {
    asked = null;
    ask(n);
  }

  /** A share at which there is a certificate, undefined if the error is about something else. */
  function enoughFor({ body }) {
    const proven = body?.least_malicious_share;
    if (proven === undefined) return undefined;
    return proven < LAST && (SHARES.find((share) => share > 2 * proven) ?? LAST);
  }

  /** The share to assume where the viewer has chosen none: somewhat more than estimated and proven. */
  function usual() {
    const { attack, malicious_share: estimated } = verdict();
    const lowest = attack === "cannot_be_seen" ? 0.05 : USUAL;
    return SHARES.find((each) => each >= Math.max(lowest, 1.3 * estimated, 1.3 * least)) ?? LAST;
  }

  /** Request the certificate of n reports, unless it is there or under way. */
  async function ask(reports) {
    n = reports;
    assumed = settings.malicious ?? usual();
    showShare();
    if (root.hidden) return;
    const questions = [isOfNumbers ? { mean_above: 0 } : { top: 1 }];
    if (settings.targets.size) questions.push({ items: [...settings.targets] });
    const body = { malicious_share: assumed, questions };
    const question = JSON.stringify([n, body]);
    if (question === asked) return;
    asked = question;
    running?.abort();
    const mine = (running = new AbortController());
    try {
      answer = await post(roundPath(round.id, "certificate"), body, {
        signal: AbortSignal.any([mine.signal, signal]),
      });
      [least, refusal] = [answer.least_malicious_share, null];
      showAnswer();
    } catch (error) {
      if (isAbort(error)) return;
      answer = null;
      if (error.body?.least_malicious_share) {
        least = error.body.least_malicious_share;
        refusal = sentenceOf(error);
      }
      if (settings.malicious === null && usual() > assumed) {
        running = null;
        return ask(n);
      }
      showError(error);
    }
    running = null;
    changed("shown");
    return undefined;
  }

  return {
    root,
    ask,
    /** The certificate that is shown, null before the first and after an error; undefined if the protocol has none. */
    get: () => (root.hidden ? undefined : answer),
    /** The sentence on the proven share of malicious reports, null without any. */
    proven: () => refusal ?? answer?.sentences.proven ?? null,
    /** The proven share of malicious reports, null before the first answer. */
    least: () => least,
    isPending: () => running !== null,
  };
}
