// Head of a round: its name, its parameters in a line, and a menu that closes and deletes it.

import { fill, h, menu } from "../dom.js";
import { day, number, plural } from "../format.js";
import { help } from "../help.js";
import { go } from "../router.js";

/** A round's title and question; null for one without both. */
export function asked({ title, question }) {
  if (!title && !question) return null;
  return h(
    "p",
    { class: "asked" },
    title && h("bdi", {}, title),
    title && question && ": ",
    question && h("bdi", {}, question),
  );
}

/** Make the head of a round's view; `show()` updates it after a change of the round. */
export function header(round, signal) {
  const state = h("span", {});
  const show = () =>
    fill(
      state,
      round.state === "open" ? `opened ${day(round.opened_at)}` : `closed ${day(round.closed_at)}`,
    );
  const actions = menu(`Actions on ${round.name}`, () => [
    round.state === "open" && [
      "Close the round",
      async () => {
        const { closeRound } = await import("../actions.js");
        if (!(await closeRound(round))) return;
        Object.assign(round, { state: "closed", closed_at: new Date().toISOString() });
        show();
      },
    ],
    [
      "Delete the round",
      async () => {
        const { deleteRound } = await import("../actions.js");
        if (!(await deleteRound(round))) return;
        round.state = "deleted";
        if (!signal.aborted) go(["rounds"]);
      },
      "danger",
    ],
  ]);
  show();
  return {
    root: h(
      "header",
      { class: "title" },
      h("h1", {}, round.name),
      h(
        "p",
        { class: "quiet" },
        round.protocol.toUpperCase(),
        " ",
        help("protocol"),
        ` · ε = ${number(round.epsilon)} `,
        help("epsilon"),
        ` · ${plural(round.items.length, "item")} · `,
        state,
      ),
      actions,
      asked(round),
    ),
    show,
  };
}
