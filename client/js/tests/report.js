// Reports as it is told on standard input, and says what became of it: for tests against a real
// server.
//
// {"url": …, "round": …, "values": […], "key": …, "tickets": […], "file": …, "loses": n}: each value
// has a user of its own, unless they share the ledger in `file`; `loses` answers to submissions
// never arrive.
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

const said = [];
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
    said.push(await new Reporter(url, round, options).report(value));
  } catch (error) {
    said.push({ error: error.name, message: error.message, note: error.note, slug: error.slug });
  }
}
console.log(JSON.stringify(said));
