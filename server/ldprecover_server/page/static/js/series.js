// Rounds of a series over time: the sum of their estimates in its honest band, and chosen items.

import { get, roundPath } from "./api.js";
import { SERIES } from "./chart/colours.js";
import { frame, numeric } from "./chart/frame.js";
import { lines } from "./chart/lines.js";
import { h } from "./dom.js";
import { count, frequency } from "./format.js";

const WIDE = 1.959964;
const MOST_ROUNDS = 24;
const PAGES = 5; // of 200 rounds each that are searched
const MOST_ITEMS = 5;

const answers = new Map(); // frequencies by id and n

/** The rounds of a series that have reports, the oldest first. */
export async function roundsOf(series, signal) {
  const found = [];
  let before;
  for (let page = 0; page < PAGES && found.length < MOST_ROUNDS; page++) {
    const { rounds } = await get("rounds", { query: { limit: 200, before }, signal });
    found.push(...rounds.filter((round) => round.series === series && round.n > 0));
    if (rounds.length < 200) break;
    before = rounds.at(-1).id;
  }
  return found.slice(0, MOST_ROUNDS).reverse();
}

async function estimatesOf(round, signal) {
  const name = `${round.id} ${round.n}`;
  if (!answers.has(name)) {
    const found = await get(roundPath(round.id, "frequencies"), { signal });
    if (answers.size >= 2 * MOST_ROUNDS) answers.delete(answers.keys().next().value);
    answers.set(name, found);
  }
  return answers.get(name);
}

/** Make both charts; `draw(rounds, items)` reads the rounds' frequencies; items are indices. */
export function overTime(name, signal) {
  const sum = frame({
    title: "Sum of the estimates over rounds",
    name: `${name}-sum`,
    signal,
    tableOpen: true,
  });
  const items = frame({
    title: "Chosen items over rounds",
    name: `${name}-items`,
    signal,
    tableOpen: true,
  });
  const drawSum = lines(sum, signal);
  const drawItems = lines(items, signal);
  const root = h("div", {}, sum.root, items.root);
  return {
    root,
    async draw(rounds, chosen) {
      const found = [];
      for (const round of rounds) found.push(await estimatesOf(round, signal));
      if (signal.aborted || found.length === 0) return;
      const x = rounds.map((_, i) => i + 1);
      const shared = {
        x,
        xTitle: "Round",
        xText: (at) =>
          Number.isInteger(at) && rounds[at - 1] ? shortened(rounds[at - 1].name, name) : "",
      };
      const band = found.every((each) => each.sum_standard_error !== null);
      drawSum({
        ...shared,
        yTitle: "Sum, %",
        series: [
          ...(band
            ? [
                {
                  name: "honest reports, 95 %",
                  colour: "recovered",
                  values: null,
                  low: found.map((each) => 100 * (1 - WIDE * each.sum_standard_error)),
                  high: found.map((each) => 100 * (1 + WIDE * each.sum_standard_error)),
                },
              ]
            : []),
          {
            name: "sum of the estimates",
            colour: "poisoned",
            values: found.map((each) => 100 * each.sum),
            points: true,
          },
        ],
      });
      const outside = found.filter(
        (each) => band && Math.abs(each.sum - 1) > WIDE * each.sum_standard_error + 1e-9,
      ).length;
      sum.describe(
        band
          ? `${count(outside)} of ${count(found.length)} rounds are outside the band that honest reports keep to in 95 of 100 rounds, whatever users hold.`
          : "For this protocol no law of the sum is known; honest reports make it 100 % on average.",
      );
      const rows = rounds.map((round, i) => ({ round, answer: found[i] }));
      sum.setTable(
        [
          { title: "Round", value: (row) => row.round.name },
          numeric("Reports", (row) => row.answer.n, count),
          numeric("Sum", (row) => row.answer.sum, frequency),
          numeric(
            "Honest ± 95 %",
            (row) =>
              row.answer.sum_standard_error === null ? null : WIDE * row.answer.sum_standard_error,
            frequency,
          ),
        ],
        rows,
      );
      const last = found.at(-1);
      const indices = (chosen.length ? chosen : largest(last.frequencies)).slice(0, MOST_ITEMS);
      drawItems({
        ...shared,
        yTitle: "Frequency, %",
        series: indices.map((index, k) => ({
          name: last.items[index],
          colour: SERIES[k],
          values: found.map((each) => 100 * each.frequencies[index]),
          points: true,
          low: found.map(
            (each) => 100 * (each.frequencies[index] - WIDE * each.standard_errors[index]),
          ),
          high: found.map(
            (each) => 100 * (each.frequencies[index] + WIDE * each.standard_errors[index]),
          ),
        })),
      });
      items.describe(
        `${chosen.length ? "The chosen items" : "The most frequent items of the last round"}, with bands that hold 95 %.`,
      );
      items.setTable(
        [
          { title: "Round", value: (row) => row.round.name },
          ...indices.map((index) =>
            numeric(last.items[index], (row) => row.answer.frequencies[index], frequency),
          ),
        ],
        rows,
      );
    },
  };
}

function largest(values) {
  return values.map((_, index) => index).sort((a, b) => values[b] - values[a]);
}

/** A round's name without its series' name as a prefix. */
function shortened(name, series) {
  return name.startsWith(`${series}-`) ? name.slice(series.length + 1) : name;
}
