// The types declare exactly what the modules export.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import * as client from "../ldprecover.js";
import * as node from "../node.js";

const HERE = new URL("../", import.meta.url);
const text = (path) => readFileSync(new URL(path, HERE), "utf8");
const manifest = JSON.parse(text("package.json"));

function declared(path) {
  return [...text(path).matchAll(/^export (?:const|class|function) (\w+)/gm)]
    .map(([, name]) => name)
    .sort();
}

test("the types declare exactly the exported names", () => {
  assert.deepEqual(declared("ldprecover.d.ts"), Object.keys(client).sort());
  assert.deepEqual(declared("node.d.ts"), Object.keys(node).sort());
});

test("the types declare every public method", () => {
  for (const name of ["Ledger", "Reporter", "Usage"]) {
    const members = text("ldprecover.d.ts").split(`export class ${name} {`)[1].split("\n}")[0];
    const inTypes = [...members.matchAll(/^ {2}(?:readonly )?(\w+)[(:]/gm)].map(
      ([, member]) => member,
    );
    const own = Object.getOwnPropertyNames(client[name].prototype);
    const internal = ["claim", "draw", "pending", "schedule", "beginTry", "endTry", "settle"]; // what a reporter asks of its ledger
    assert.deepEqual(new Set(inTypes), new Set(own.filter((member) => !internal.includes(member))));
  }
});

test("the errors are a tree with names", () => {
  for (const [name, value] of Object.entries(client)) {
    if (!name.endsWith("Error")) continue;
    assert.ok(name === "ClientError" || value.prototype instanceof client.ClientError, name);
    assert.equal(value.errorName, name);
  }
  assert.equal(new client.LedgerError("x").name, "LedgerError");
});

test("the package's files exist", () => {
  const exported = Object.values(manifest.exports).flatMap((entry) =>
    typeof entry === "string" ? entry : Object.values(entry),
  );
  const built = ["src", "ldprecover.classic.js", "./ldprecover.classic.js"];
  for (const path of [...exported, ...manifest.files].filter((file) => !built.includes(file)))
    assert.ok(text(path), path);
  assert.equal(manifest.dependencies, undefined);
});
