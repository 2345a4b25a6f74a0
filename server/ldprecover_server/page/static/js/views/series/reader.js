// Reads the rounds of a series, with their verdicts.

import { formPath, get } from "../../api.js";

const PAGE = 100; // rounds of a request

/**
 * Read a series: its `entries`, the oldest first, each with its `rounds`: one, or those of a form. A form is read again
 * until `forms` has it, closed and with all verdicts.
 */
export async function readSeries(name, forms, signal) {
  const path = `series/${encodeURIComponent(name)}`;
  const { rounds = [], forms: ofForms = [] } = await get(path, { signal });
  const listed = await listedRounds(new Set(rounds.map((round) => round.id)), signal);
  const entries = [...rounds, ...ofForms].map(async (entry) => {
    if (rounds.length) return { ...entry, rounds: [listed.get(entry.id)].filter(Boolean) };
    const form = forms.get(entry.id) ?? (await get(formPath(entry.id), { signal }));
    const isFinal = form.rounds.every(({ state, verdict }) => state === "closed" && verdict);
    if (isFinal) forms.set(entry.id, form);
    return { ...entry, rounds: form.rounds };
  });
  return (await Promise.all(entries)).filter((entry) => entry.rounds.length).reverse();
}

/** The rounds with these ids, from the list of all rounds. */
async function listedRounds(missing, signal) {
  const found = new Map();
  let before = null;
  while (missing.size) {
    const page = (await get("rounds", { query: { limit: PAGE, before }, signal })).rounds;
    for (const round of page) if (missing.delete(round.id)) found.set(round.id, round);
    if (page.length < PAGE) break;
    before = page.at(-1).id;
  }
  return found;
}
