// The students' page of a class: each press of a button sends one fake report.

import { get, post, sentenceOf } from "./api.js";
import { fill, h } from "./dom.js";

const REASONS = {
  409: "The round is closed: it takes no more reports.",
  429: "Too fast: wait a second.",
};
const place = (id) => document.getElementById(id);

async function say(work) {
  try {
    fill(place("status"), await work());
  } catch (error) {
    fill(place("status"), REASONS[error.status] ?? sentenceOf(error));
  }
}

async function show() {
  const { question, items } = await get("../rounds/class");
  const button = (label, item) => {
    const send = async () => {
      await post(`../fake?item=${item}`);
      return `Sent: a fake report that raises “${label}”.`;
    };
    return h("div", {}, h("button", { onclick: () => say(send) }, h("bdi", {}, label)));
  };
  fill(place("question"), question);
  fill(place("answers"), items.map(button));
  return "";
}

say(show);
