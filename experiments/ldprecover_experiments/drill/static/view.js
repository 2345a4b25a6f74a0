// The view of a drill: result, progress and form.

import { Problem, poll, sentenceOf } from "/page/js/api.js";
import { announce, fill, h, notice } from "/page/js/dom.js";
import { count, number, plural } from "/page/js/format.js";
import { link, setQuery } from "/page/js/router.js";

import { begin, cancel, options, run, takeToken } from "./calls.js";
import { form } from "./form.js";
import { showMap } from "./map.js";
import { showScore } from "./score.js";
import { showSteps } from "./steps.js";

const SECONDS = 1;
const NEEDS_TOKEN =
  "This page lacks the drill's token. Open the address that the command printed when it started: the token is in it.";

export async function show({ main, query, signal }) {
  const hasToken = takeToken(query.get("token"));
  if (query.get("token")) setQuery({ token: null }); // keep it out of history and screen
  const message = h("div");
  const progress = h("div");
  const result = h("div");
  const title = h("summary", {}, "Settings");
  const settings = h("details", { class: "card", open: true }, title);
  fill(main, h("h1", {}, "Drill"), message);
  let choices;
  try {
    choices = hasToken && (await options(signal));
  } catch (error) {
    if (!(error instanceof Problem && error.status === 403)) throw error;
  }
  if (!choices) {
    fill(message, notice("bad", NEEDS_TOKEN));
    return;
  }
  const controls = form(choices, query.get("what") === "map" ? "map" : "round", start);
  settings.append(
    h(
      "p",
      {},
      "Genuine users report to a new round, an attack poisons it, and each recovery is compared with the truth, which only the drill knows. No other round is touched.",
    ),
    controls.root,
  );
  main.append(settings, progress, result);

  let shown = null; // the last response: a result is drawn once
  const again = poll(
    async () => {
      try {
        const state = await run(signal);
        fill(message);
        draw(state);
      } catch (error) {
        if (!signal.aborted) fill(message, notice("bad", sentenceOf(error)));
      }
    },
    SECONDS,
    signal,
  );

  async function start(request) {
    fill(message);
    try {
      draw(await begin(request));
      progress.querySelector("button").focus(); // the form is closed
      again();
    } catch (error) {
      fill(message, notice("bad", sentenceOf(error)));
      message.scrollIntoView({ block: "nearest" });
    }
  }

  async function stop() {
    try {
      draw(await cancel());
    } catch (error) {
      fill(message, notice("bad", sentenceOf(error)));
    }
  }

  function draw(state) {
    const isBusy = ["running", "cancelling"].includes(state.state);
    controls.setBusy(isBusy);
    const now = JSON.stringify({ ...state, result: null });
    if (now === shown) return;
    const hasEnded = shown !== null && !isBusy && state.state !== "idle";
    shown = now;
    if (state.settings) fill(title, words(state));
    if (isBusy) {
      fill(result);
      settings.open = false;
      showSteps(progress, state, stop);
      return;
    }
    if (hasEnded) announce(`The drill is ${state.state}.`);
    const { activeElement } = document;
    const hadFocus = progress.contains(activeElement) || activeElement === document.body;
    fill(progress);
    settings.open = state.state !== "done";
    if (state.state === "cancelled")
      fill(result, notice("", "The drill was cancelled, and its round was deleted."));
    else if (state.state === "failed") fill(result, notice("bad", state.error));
    else if (state.state === "done")
      (state.kind === "map" ? showMap : showScore)(result, state, signal);
    if (hasEnded && hadFocus) (result.querySelector("[tabindex]") ?? title).focus();
  }

  /** The settings of a run in a line. */
  function words({ kind, settings: used }) {
    const attack =
      kind === "map" ? "all attacks" : `${choices.attacks[used.attack].title} (${used.attack})`;
    const targets = used.targets === null ? "" : `, ${plural(used.targets, "target")}`;
    const users = `${count(used.users)} genuine and ${count(used.malicious_users)} malicious users`;
    return `Settings: ${attack}${targets}; ${users}; ${used.dataset}, ${used.protocol}, ε = ${number(used.epsilon)}`;
  }
}
