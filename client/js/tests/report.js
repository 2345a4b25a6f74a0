// Reports the values that standard input lists, and prints the receipts: for tests on real servers.
//
// {"url": …, "round": …, "values": […], "key": …, "tickets": […]}: each value is another user's.
import { Ledger, Reporter, Retries, memoryStore } from "../ldprecover.js";

let text = "";
for await (const piece of process.stdin) text += piece;
const { url, round, values, key = null, tickets = [] } = JSON.parse(text);

const results = [];
for (const [i, value] of values.entries()) {
  const options = {
    ledger: new Ledger(memoryStore(), { maxTotalEpsilon: Infinity }),
    key,
    ticket: tickets[i] ?? null,
    maxEpsilon: 10,
    retries: new Retries({ attempts: 2, base: 0 }),
  };
  try {
    results.push(await new Reporter(url, round, options).report(value));
  } catch (error) {
    results.push({ error: error.name, message: error.message, note: error.note, slug: error.slug });
  }
}
console.log(JSON.stringify(results));
