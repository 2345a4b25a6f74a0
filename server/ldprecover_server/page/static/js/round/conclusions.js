// What a method concludes about an attack, and what the alarms say.

import { h } from "../dom.js";
import { number } from "../format.js";

/** A method's conclusions about the attack. */
export function concluded({ sentences }) {
  return h(
    "div",
    {},
    h("h3", {}, "What it concludes"),
    h(
      "ul",
      {},
      sentences.map((sentence) => h("li", {}, sentence)),
    ),
  );
}

/** What an answer of GET /alarms says. */
export function alarmTests({ alarms, sentences: [finding, meaning, tested] }) {
  const isRaised = alarms.some((alarm) => alarm.raised);
  return [
    h("p", {}, isRaised ? h("strong", {}, finding) : finding, " ", meaning),
    h(
      "ul",
      { class: "plain" },
      alarms.map((alarm) =>
        h(
          "li",
          {},
          h(
            "span",
            { class: `badge ${alarm.raised ? "bad" : "good"}` },
            alarm.raised ? "raised" : "not raised",
          ),
          " ",
          h("strong", {}, alarm.name),
          ": ",
          `${number(alarm.statistic)}, raised above ${number(alarm.threshold)}. `,
          h("span", { class: "quiet" }, `${alarm.meaning}.`),
        ),
      ),
    ),
    h("p", { class: "quiet" }, tested),
  ];
}
