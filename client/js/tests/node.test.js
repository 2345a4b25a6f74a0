// A ledger in a file.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";

import { Ledger, LedgerError } from "../ldprecover.js";
import { fileStore } from "../node.js";
import { Collector } from "./helpers.js";

let folder;

before(() => {
  folder = mkdtempSync(join(tmpdir(), "ldprecover-"));
});

after(() => rmSync(folder, { recursive: true }));

test("a private file keeps the ledger between processes", async () => {
  const path = join(folder, "kept.json");
  const collector = await Collector.of({});
  await collector.reporter({ ledger: new Ledger(fileStore(path)) }).report("a");
  await assert.rejects(
    collector.reporter({ ledger: new Ledger(fileStore(path)) }).report("a"),
    /has your report/,
  );
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.deepEqual(
    readdirSync(folder).filter((name) => name !== "kept.json"),
    [],
  );
});

test("a process waits for the lock", async () => {
  const path = join(folder, "shared.json");
  const [ledger, node] = ["ldprecover.js", "node.js"].map((file) => {
    return JSON.stringify(new URL(`../${file}`, import.meta.url).href);
  });
  const program = `
    const { Ledger } = await import(${ledger});
    const { fileStore } = await import(${node});
    console.log("begun");
    await new Ledger(fileStore(${JSON.stringify(path)})).spent();
    console.log("done");`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program]);
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const said = [];
  await fileStore(path).lock("ledger", async () => {
    said.push((await lines.next()).value);
    // Without a lock it would be done long before.
    const patience = new Promise((wake) => setTimeout(wake, 300, "waits"));
    said.push(await Promise.race([patience, once(child, "exit").then(() => "ended")]));
  });
  said.push((await lines.next()).value);
  assert.deepEqual(said, ["begun", "waits", "done"]);
});

test("another kind of file is left unchanged", async () => {
  const path = join(folder, "other.json");
  writeFileSync(path, "a letter");
  await assert.rejects(new Ledger(fileStore(path)).entries(), LedgerError);
  assert.equal(readFileSync(path, "utf8"), "a letter");
});

test("a missing folder is a LedgerError", async () => {
  await assert.rejects(
    new Ledger(fileStore(join(folder, "none", "x.json"))).entries(),
    LedgerError,
  );
});
