// Reports the values that standard input lists, and prints the receipts: for tests on real servers.
//
// {"url": …, "round": …, "values": […], "key": …, "tickets": […], "file": …, "loses": n}: each value
// is another user's, unless `file` names a ledger; the first `loses` responses get lost.
import { Ledger, Reporter, Retries, memoryStore } from "../ldprecover.js";
import { fileStore } from "../node.js";

let text = "";
for await (const piece of process.stdin) text += piece;
const { url, round, values, key = null, tickets = [], file = null, loses = 0 } = JSON.parse(text);

let lost = 0;
async function losing(address, request) {
  const answer = await fetch(address, request);
  if (request.method === "POST" && lost < loses) {
    lost += 1;
    throw new TypeError("the answer was lost");
  }
  return answer;
}

const results = [];
for (const [i, value] of values.entries()) {
  const ledger = new Ledger(file === null ? memoryStore() : fileStore(file), {
    maxTotalEpsilon: Infinity,
  });
  const retries = new Retries({ attempts: 2, base: 0 });
  const options = {
    ledger,
    key,
    ticket: tickets[i] ?? null,
    maxEpsilon: 10,
    retries,
    fetch: losing,
  };
  try {
    results.push(await new Reporter(url, round, options).report(value));
  } catch (error) {
    results.push({ error: error.name, message: error.message, note: error.note, slug: error.slug });
  }
}
console.log(JSON.stringify(results));
