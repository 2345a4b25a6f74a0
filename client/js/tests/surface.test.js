// What is exported is what the types say; the classic script is the modules.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { runInNewContext } from "node:vm";

import * as client from "../ldprecover.js";
import * as node from "../node.js";
import { classic } from "../scripts/classic.js";
import { systemCrypto } from "../src/words.js";
import { Collector } from "./helpers.js";

const HERE = new URL("../", import.meta.url);
const text = (path) => readFileSync(new URL(path, HERE), "utf8");
const manifest = JSON.parse(text("package.json"));

function declared(path) {
  return [...text(path).matchAll(/^export (?:const|class|function) (\w+)/gm)]
    .map(([, name]) => name)
    .sort();
}

test("the types have every name that is exported, and no other", () => {
  assert.deepEqual(declared("ldprecover.d.ts"), Object.keys(client).sort());
  assert.deepEqual(declared("node.d.ts"), Object.keys(node).sort());
});

test("the types have every public method of the classes", () => {
  for (const name of ["Ledger", "Reporter"]) {
    const members = text("ldprecover.d.ts").split(`export class ${name} {`)[1].split("\n}")[0];
    const inTypes = [...members.matchAll(/^ {2}(?:readonly )?(\w+)[(:]/gm)].map(
      ([, member]) => member,
    );
    const own = Object.getOwnPropertyNames(client[name].prototype);
    const internal = ["claim", "beginTry", "endTry", "settle"]; // what a reporter asks of its ledger
    assert.deepEqual(new Set(inTypes), new Set(own.filter((member) => !internal.includes(member))));
  }
});

test("the errors are a tree, and say their names", () => {
  for (const [name, value] of Object.entries(client)) {
    if (!name.endsWith("Error")) continue;
    assert.ok(name === "ClientError" || value.prototype instanceof client.ClientError, name);
    assert.equal(value.errorName, name);
  }
  assert.equal(new client.LedgerError("x").name, "LedgerError");
});

test("the classic script is what is made of the modules", () => {
  assert.equal(text("ldprecover.classic.js"), classic(), "node scripts/classic.js writes it");
});

test("the classic script gives a page the same names in one global, and they work", async () => {
  const page = Object.create(null);
  const crypto = await systemCrypto();
  const platform = {
    crypto,
    TextEncoder,
    TextDecoder,
    URL,
    AbortController,
    setTimeout,
    clearTimeout,
    performance,
  };
  runInNewContext(text("ldprecover.classic.js"), Object.assign(page, platform));
  assert.deepEqual(Object.keys(page.LDPRecover).sort(), Object.keys(client).sort());
  assert.deepEqual(
    Object.keys(page).filter((name) => !(name in platform)),
    ["LDPRecover"],
  );
  const { Reporter, Ledger, memoryStore } = page.LDPRecover;
  const collector = await Collector.of({});
  const reporter = new Reporter(collector.url, "letters", {
    ledger: new Ledger(memoryStore()),
    fetch: collector.fetch,
  });
  assert.equal((await reporter.report("a")).state, "accepted");
});

test("the classic script is read alike in any encoding of a page", () => {
  const code = text("ldprecover.classic.js").replace(/^ *(\/\/|\*|\/\*\*).*$/gm, "");
  assert.doesNotMatch(code, /[^\x00-\x7f]/);
});

test("what the package exports and ships is there", () => {
  const exported = Object.values(manifest.exports).flatMap((entry) =>
    typeof entry === "string" ? entry : Object.values(entry),
  );
  for (const path of [...exported, ...manifest.files.filter((file) => file !== "src")])
    assert.ok(text(path), path);
  assert.equal(manifest.dependencies, undefined);
});
