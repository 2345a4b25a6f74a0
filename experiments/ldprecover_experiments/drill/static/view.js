// The view of a drill: form, progress and result.

import { Problem, poll, sentenceOf } from "/page/js/api.js";
import { announce, fill, h, notice } from "/page/js/dom.js";
import { count } from "/page/js/format.js";
import { link, setQuery } from "/page/js/router.js";

import { begin, cancel, options, run, takeToken } from "./calls.js";
import { form } from "./form.js";
import { showMap } from "./map.js";
import { showScore } from "./score.js";

const SECONDS = 1;
const NEEDS_TOKEN =
  "This page lacks the drill's token. Open the address that the command printed when it started: the token is in it.";

export async function show({ main, query, signal }) {
  const there = takeToken(query.get("token"));
  if (query.get("token")) setQuery({ token: null }); // keep it out of history and screen
  const said = h("div", {});
  const asked = h("div", {});
  const progress = h("div", {});
  const came = h("div", {});
  fill(
    main,
    h("h1", {}, "Drill"),
    h(
      "p",
      {},
      "Genuine users report to a round of the drill's own, an attack poisons it, and each recovery is scored against the truth, which the drill keeps to itself. Nothing here touches a round of anyone else's.",
    ),
    said,
    asked,
    progress,
    came,
  );
  if (!there) {
    fill(said, notice("bad", NEEDS_TOKEN));
    return;
  }
  let choices;
  try {
    choices = await options(signal);
  } catch (error) {
    if (error instanceof Problem && error.status === 403) {
      fill(said, notice("bad", NEEDS_TOKEN));
      return;
    }
    throw error;
  }
  const controls = form(choices, query.get("what") === "map" ? "map" : "round", start);
  fill(asked, controls.root);

  let shown = null; // the last response: a result is drawn once
  const again = poll(
    async () => {
      try {
        const state = await run(signal);
        fill(said);
        draw(state);
      } catch (error) {
        if (!signal.aborted) fill(said, notice("bad", sentenceOf(error)));
      }
    },
    SECONDS,
    signal,
  );

  async function start(what) {
    fill(said);
    try {
      draw(await begin(what));
      announce("The drill has begun.");
      again();
    } catch (error) {
      fill(said, notice("bad", sentenceOf(error)));
      said.scrollIntoView({ block: "nearest" });
    }
  }

  function draw(state) {
    const busy = ["running", "cancelling"].includes(state.state);
    controls.setBusy(busy);
    const now = JSON.stringify({ ...state, result: null });
    if (now === shown) return;
    const ended = shown !== null && !busy && state.state !== "idle";
    shown = now;
    if (ended) announce(`The drill is ${state.state}.`);
    if (busy) {
      fill(came);
      // The button stays the same element and keeps the focus.
      if (!progress.firstChild || progress.firstChild.dataset.kind !== "busy")
        fill(progress, underWay());
      update(progress.firstChild, state);
      return;
    }
    fill(progress);
    if (state.state === "cancelled")
      fill(came, notice("", "The drill was cancelled, and its round was deleted."));
    else if (state.state === "failed") fill(came, notice("bad", state.error));
    else if (state.state === "done")
      (state.kind === "map" ? showMap : showScore)(came, state, signal);
  }

  function underWay() {
    const stop = async () => {
      try {
        draw(await cancel());
      } catch (error) {
        fill(said, notice("bad", sentenceOf(error)));
      }
    };
    return h(
      "section",
      { class: "card", "data-kind": "busy", "aria-label": "The drill under way" },
      h("p", { class: "stage" }),
      h("progress", { "aria-label": "How much of this stage is done" }),
      h("p", { class: "live quiet" }),
      h("button", { type: "button", onclick: stop }, "Cancel"),
    );
  }

  function update(card, state) {
    const of = state.total ? ` (${count(state.done)} of ${count(state.total)})` : "";
    const stage = state.stage[0].toUpperCase() + state.stage.slice(1);
    fill(
      card.querySelector(".stage"),
      state.state === "cancelling" ? "It ends when the step under way is over." : `${stage}${of}.`,
    );
    const bar = card.querySelector("progress");
    if (state.total) {
      bar.max = state.total;
      bar.value = state.done;
    } else bar.removeAttribute("value");
    fill(
      card.querySelector(".live"),
      state.round && [
        "Its round, live: ",
        h("a", { href: link(["rounds", state.round]) }, state.round),
      ],
    );
    card.querySelector("button").disabled = state.state === "cancelling";
  }
}
