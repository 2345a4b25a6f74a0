// Head of a round: its name, its parameters in a line, and a menu that closes and deletes it, or a form.

import { formPath, get } from "../api.js";
import { fill, h, menu } from "../dom.js";
import { number, plural, since } from "../format.js";
import { help } from "../help.js";
import { go, link } from "../router.js";

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

/** A menu that closes and deletes the round or form that `current()` gives; `done("close")` or `done("remove")` follows. */
export function actionsMenu(current, done) {
  const kind = current().rounds ? "form" : "round";
  const act = (what) => async () => {
    const actions = await import("../actions.js");
    if (await actions[what](current(), kind)) done(what);
  };
  return menu(`Actions on ${current().name}`, () => [
    current().state === "open" && [`Close the ${kind}`, act("close")],
    [`Delete the ${kind}`, act("remove"), "danger"],
  ]);
}

/** Of which series a round is, with a link; null without one. */
export function inSeries({ series, number }) {
  if (!series) return null;
  return [` · number ${number} of the series `, h("a", { href: link(["series", series]) }, series)];
}

/** A link to a round's form, which says its name once that is read. */
function formLink(id, signal) {
  const form = h("a", { href: link(["forms", id]) }, "form");
  get(formPath(id), { signal }).then(
    ({ name }) => fill(form, `form ${name}`),
    () => {}, // it still leads there
  );
  return form;
}

/** Make the head of a round's view; `show()` updates it after a change of the round. */
export function header(round, signal) {
  const state = h("span", {});
  const show = () => fill(state, since(round));
  const done = (what) => {
    const isClosed = what === "close";
    Object.assign(round, { state: isClosed ? "closed" : "deleted", closed_at: new Date() });
    if (isClosed) show();
    else if (!signal.aborted) go(["rounds"]);
  };
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
        inSeries(round),
        round.form && [" · one question of the ", formLink(round.form, signal)],
      ),
      !round.form && actionsMenu(() => round, done),
      asked(round),
    ),
    show,
  };
}
