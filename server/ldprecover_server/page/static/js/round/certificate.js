// What a round proves whatever forged reports say: sentences, and the share of them that is assumed.

import { isAbort, post, roundPath, sentenceOf } from "../api.js";
import { announce, field, fill, h } from "../dom.js";
import { count, number } from "../format.js";
import { FORGED } from "./settings.js";

const LAST = FORGED.at(-1);
const PAUSE = 200; // milliseconds between the slider's last step and the request

/** A share as per cent, "0.7 %". */
const percent = (share) => `${number(100 * share)} %`;

/**
 * Make the panel of a round's certificate. It calls `changed` with "assumptions" after a change of `settings.forged`, and
 * with "shown" when the certificate changes.
 */
export function certificatePanel(round, settings, changed, signal) {
  const said = h("div", {}, h("p", { class: "quiet" }, "The reports are being certified."));
  const value = h("output", { class: "quiet" });
  const slider = h("input", {
    type: "range",
    name: "forged",
    min: 0,
    max: FORGED.length - 1,
    step: 1,
  });
  const place = field("Share of forged reports at most", slider);
  value.htmlFor = slider.id;
  place.append(value);
  const root = h("section", { class: "card" }, h("h2", {}, "What is proven"), said, place);
  const isOfNumbers = round.items.join() === "-1,1";
  let n = 0;
  let answer = null;
  let asked = null; // the last request as JSON, with the number of reports
  let running = null;
  let timer = 0;
  let spoken = false; // whether the next answer is the response to the viewer

  slider.addEventListener("input", () => {
    settings.forged = FORGED[slider.value];
    showShare();
    clearTimeout(timer);
    timer = setTimeout(() => {
      spoken = true;
      changed("assumptions");
    }, PAUSE);
  });
  signal.addEventListener("abort", () => clearTimeout(timer));

  function showShare() {
    slider.value = FORGED.indexOf(settings.forged);
    const share = `${percent(settings.forged)}: ${count(Math.floor(settings.forged * n))} of ${count(n)} reports`;
    fill(value, share);
    slider.setAttribute("aria-valuetext", share);
  }

  function assume(share) {
    [settings.forged, spoken] = [share, true];
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
    const least = answer.least_malicious_share;
    const [leader, ...others] = answer.answers;
    show(
      leader.certified ? "good" : least > 0 ? "bad" : "",
      h("p", {}, h("strong", {}, leader.sentence)),
      others.map((each) => h("p", {}, each.sentence)),
      h("p", { class: "quiet" }, answer.assumption),
    );
  }

  function showError(error) {
    if (error.status === 422) {
      root.hidden = true; // the protocol has no certificate
      return;
    }
    const least = error.members?.least_malicious_share;
    const enough = least < LAST && (FORGED.find((share) => share > 2 * least) ?? LAST);
    show(
      "bad",
      h("p", {}, h("strong", {}, sentenceOf(error))),
      least === undefined
        ? h("button", { type: "button", class: "small", onclick: () => ask(n) }, "Try again")
        : enough &&
            h(
              "button",
              { type: "button", class: "small", onclick: () => assume(enough) },
              `Assume at most ${percent(enough)}`,
            ),
    );
  }

  /** Request the certificate of n reports, unless it is there or under way. */
  async function ask(reports) {
    n = reports;
    showShare();
    if (root.hidden) return;
    const questions = [isOfNumbers ? { mean_above: 0 } : { top: 1 }];
    if (settings.targets.size) questions.push({ items: [...settings.targets] });
    const body = { malicious_share: settings.forged, questions };
    const question = JSON.stringify([n, body]);
    if (question === asked) return;
    asked = question;
    running?.abort();
    const mine = (running = new AbortController());
    try {
      answer = await post(roundPath(round.id, "certificate"), body, {
        signal: AbortSignal.any([mine.signal, signal]),
      });
      showAnswer();
    } catch (error) {
      if (isAbort(error)) return;
      answer = null;
      if (error.slug !== "share-too-small") asked = null; // ask again
      showError(error);
    }
    running = null;
    changed("shown");
  }

  return {
    root,
    ask,
    /** The certificate that is shown, null before the first and after an error; undefined if the protocol has none. */
    get: () => (root.hidden ? undefined : answer),
    isPending: () => running !== null,
  };
}
