// The steps of a drill under way, all of them known from the beginning.

import { announce, fill, h } from "/page/js/dom.js";
import { count } from "/page/js/format.js";
import { link } from "/page/js/router.js";

/** Show the steps in an element; `stop` cancels the drill. The same drill keeps its elements and the focus. */
export function showSteps(place, state, stop) {
  const { steps, step, done, total, round } = state;
  if (!place.firstChild) fill(place, card(steps, stop));
  const [title, bar, list, live, button] = ["h2", "progress", "ol", "p", "button"].map((tag) =>
    place.querySelector(tag),
  );
  const text = `Step ${step + 1} of ${steps.length}: ${steps[step]}`;
  if (title.textContent !== text) {
    fill(title, text);
    announce(text);
  }
  bar.value = step + (total ? done / total : 0);
  [...list.children].forEach((item, k) => {
    item.className = k < step ? "done" : "";
    if (k === step) item.setAttribute("aria-current", "step");
    else item.removeAttribute("aria-current");
    fill(item, steps[k], k === step && total ? ` (${count(done)} of ${count(total)})` : "");
  });
  button.disabled = state.state === "cancelling";
  fill(
    live,
    state.state === "cancelling" && "The drill ends when this step is over. ",
    round && ["The round, live: ", h("a", { href: link(["rounds", round]) }, round)],
  );
}

function card(steps, stop) {
  return h(
    "section",
    { class: "card", "aria-label": "The drill under way" },
    h("h2"),
    h("progress", { class: "drill-progress", max: steps.length, "aria-label": "Steps done" }),
    h(
      "ol",
      { class: "drill-steps" },
      steps.map((each) => h("li", {}, each)),
    ),
    h("p", { class: "quiet" }),
    h("button", { type: "button", onclick: stop }, "Cancel"),
  );
}
