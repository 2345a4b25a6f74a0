// All rounds at a glance: how far each is, and what its alarms say.

import { get, poll, sentenceOf } from "../api.js";
import { fill, h, notice } from "../dom.js";
import { count, number, time } from "../format.js";
import { link } from "../router.js";

const SECONDS = 3;

export async function show({ main, signal }) {
  const list = h("div", {});
  const said = h("div", {});
  fill(main, h("h1", {}, "Rounds"), said, list);
  poll(async () => {
    try {
      const { rounds } = await get("rounds", { query: { limit: 100 }, signal });
      fill(said);
      fill(list, rounds.map((round) => h("p", {}, h("a", { href: link(["rounds", round.name]) }, round.name), ` ${count(round.n)} ${number(round.epsilon)} ${time(round.opened_at)}`)));
    } catch (error) {
      if (!signal.aborted) fill(said, notice("bad", sentenceOf(error)));
    }
  }, SECONDS, signal);
}
