// Panels of a round as text: alarms and methods.

import { sentenceOf } from "../api.js";
import { action, fill, h, notice } from "../dom.js";
import { count, number, plural } from "../format.js";
import { help } from "../help.js";
import { alarmTests, concluded } from "./conclusions.js";

/** The panel of alarms; `show({answer, error})` takes the last test, `testNow` asks for another. */
export function alarmPanel(testNow) {
  const place = h("div", {}, h("p", {}, "The reports are being tested."));
  const button = action("Test now", testNow, { class: "small" });
  const title = h("h2", {}, "Alarms ", help("alarm", "alarms"));
  let shown = null;
  return {
    root: h("section", { class: "card" }, h("div", { class: "row" }, title, button), place),
    show(test) {
      const next = test?.answer ?? test?.error ?? null;
      if (next === null || next === shown) return undefined;
      shown = next;
      if (!test.answer) return fill(place, notice("bad", sentenceOf(test.error)));
      return fill(place, alarmTests(test.answer));
    },
  };
}

/** What each method that is shown says, side by side; `show(names, recoveries, reports(name), {again,
 * cancel})`, where `reports` says how many there are now, for methods that are not asked again by themselves, else 0. */
export function methodNotes() {
  const place = h("div", { class: "cards" });
  const kept = new Map(); // card by method: its buttons keep the focus
  return {
    root: h("section", {}, place),
    show(names, recoveries, reports, { again, cancel }) {
      for (const name of kept.keys()) if (!names.includes(name)) kept.delete(name);
      fill(
        place,
        names.map((name) => {
          if (!kept.has(name)) kept.set(name, card(name, again, cancel));
          kept.get(name).show(recoveries.get(name), reports(name));
          return kept.get(name).root;
        }),
      );
    },
  };
}

function card(name, again, cancel) {
  const body = h("div", {});
  const progress = h("progress", { "aria-label": `Progress of ${name}` });
  const stop = action("Cancel", () => cancel(name), { class: "small" });
  const running = h("div", { class: "row", hidden: true }, progress, stop);
  const repeat = action("Work it out again", () => again(name), { class: "small" });
  let shown = null;
  return {
    root: h(
      "article",
      { class: "card" },
      h("h2", {}, name === "auto" ? "Best estimate" : name),
      running,
      body,
      repeat,
    ),
    show(found, n) {
      running.hidden = !found?.isRunning;
      const isOld = Boolean(found?.answer) && found.n < n;
      repeat.hidden = !(running.hidden && found && (isOld || !found.answer));
      const key = `${found?.error?.message}|${isOld && n}`;
      if (shown && shown.answer === found?.answer && shown.key === key) return;
      shown = { answer: found?.answer, key };
      fill(body, found?.error ? notice("bad", sentenceOf(found.error)) : said(found, isOld, n));
    },
  };
}

function said(found, isOld, n) {
  const { answer } = found ?? {};
  if (!answer) return h("p", { class: "quiet" }, "Nothing has been worked out yet.");
  return [
    isOld && notice("", `Worked out at ${plural(answer.n, "report")}; there are ${count(n)} now.`),
    answer.eta > 0 &&
      h(
        "p",
        { class: "quiet" },
        `η = ${number(answer.eta, 4)}${answer.targets.length ? `, ${plural(answer.targets.length, "target")}` : ""}.`,
      ),
    h(
      "ul",
      {},
      answer.notes.map((note) => h("li", {}, note)),
    ),
    answer.conclusions && concluded(answer.conclusions),
  ];
}
