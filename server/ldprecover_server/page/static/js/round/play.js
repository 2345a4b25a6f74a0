// "Play an attack" on the page of a demo, whose server opens a round, attacks it and knows the truth.

import { get, isAbort, poll, post, sentenceOf } from "../api.js";
import { announce, field, fill, h, notice } from "../dom.js";
import { count, isolated } from "../format.js";
import { go } from "../router.js";
import { lessonPicture } from "./lesson.js";

const SECONDS = 1;
const ERROR_SECONDS = 5;
const REST_SECONDS = 3600; // after the end

/**
 * Show the panel in `place` if the server has plays and takes the token; `setTruth(frequencies)` takes the truth of a
 * round that was played.
 */
export function showPlay(place, token, round, setTruth, signal) {
  const options = { headers: { "X-Page-Token": token }, signal };
  const result = h("div", {});
  const picture = lessonPicture(round.items);
  const lesson = h("section", { class: "card", "aria-label": "The lesson", hidden: true });
  lesson.append(picture.root);
  let state = null;

  async function look() {
    try {
      const play = await get("truth", { ...options, query: { round: round.name } });
      if (state === null) fill(place, lesson, panel(play, token, options, result));
      if (state !== play.state) fill(result, outcome(play, round.items));
      if (state === "running" && play.state !== state) announce(play.score?.headline ?? play.error);
      state = play.state;
      if (play.score && lesson.hidden) {
        setTruth(play.score.truth);
        picture.draw(drawn(play));
        lesson.hidden = false;
      }
      return state === "running" ? SECONDS : REST_SECONDS;
    } catch (error) {
      if (!isAbort(error) && state !== null) fill(result, notice("bad", sentenceOf(error)));
      return state === "running" ? ERROR_SECONDS : REST_SECONDS;
    }
  }
  poll(look, SECONDS, signal);
}

/** What the picture shows of a play that has ended. */
function drawn({ settings, score }) {
  const { genuine: told, poisoned: attacked, recovered, targets: raised, best: method } = score;
  return { told, attacked, recovered, raised, fakes: settings.malicious_users, method };
}

function panel({ attacks, settings }, token, options, result) {
  const attack = h(
    "select",
    { name: "attack", value: settings.attack, onchange: follow },
    Object.entries(attacks).map(([name, { title }]) =>
      h("option", { value: name }, `${name}: ${title}`),
    ),
  );
  const number = (name, value, min, max) =>
    h("input", { type: "number", name, value, min, max, step: "any", required: true });
  const share = number("share", Number((100 * settings.beta).toPrecision(12)), 0, 90);
  const targets = number("targets", settings.targets ?? 10, 1, null);
  const targetsField = field("Targets", targets);
  const sentence = h("p", { class: "quiet", id: "play-attack" });
  const said = h("div", {});
  const button = h("button", { type: "submit", class: "main" }, "Play it");
  attack.setAttribute("aria-describedby", sentence.id);

  function follow() {
    fill(sentence, attacks[attack.value].sentence);
    targetsField.hidden = !attacks[attack.value].targeted;
  }

  async function play(event) {
    event.preventDefault();
    button.disabled = true;
    try {
      const query = { attack: attack.value, beta: share.value / 100, targets: targets.value };
      const { round } = await post("attack", undefined, { ...options, query });
      go(["rounds", round], { demo: token });
    } catch (error) {
      if (!isAbort(error)) fill(said, notice("bad", sentenceOf(error)));
    }
    button.disabled = false;
  }

  follow();
  return h(
    "section",
    { class: "card", "aria-label": "Play an attack" },
    h("h2", {}, "Play an attack"),
    h(
      "form",
      { class: "controls", onsubmit: play },
      field("Attack", attack),
      field("Malicious reports, % of all", share),
      targetsField,
      button,
    ),
    sentence,
    said,
    result,
  );
}

/** What a play says of its round. */
function outcome({ state, settings, score, error }, labels) {
  if (state === "none") return null;
  const users = `${count(settings.users)} genuine and ${count(settings.malicious_users)} malicious users`;
  if (state === "running")
    return h("p", {}, `${users} report to this round, by ${settings.attack}.`);
  if (state === "failed") return notice("bad", `The play failed: ${error}`);
  const targets = score.targets.map((index) => isolated(labels[index])).join("; ");
  return [
    h("p", { class: "lead" }, score.headline),
    h(
      "ul",
      {},
      score.details.map((detail) => h("li", {}, detail)),
      targets && h("li", {}, `The targets: ${targets}.`),
    ),
    h("p", { class: "quiet" }, `${users} reported. The chart shows the truth as ticks.`),
  ];
}
