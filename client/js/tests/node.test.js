// A ledger in a file.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from "node:fs";
import { copyFileSync, utimesSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
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

/** Start a process that runs a program with `fileStore` and `path`. */
function start(path, program) {
  const [node, text] = [new URL("../node.js", import.meta.url).href, JSON.stringify(path)];
  const names = `const { fileStore } = await import("${node}"); const path = ${text};`;
  return spawn(process.execPath, ["--input-type=module", "-e", names + program]);
}

test("a private file keeps the ledger between processes", async () => {
  const path = join(folder, "kept.json");
  const collector = await Collector.of({});
  await collector.reporter({ ledger: new Ledger(fileStore(path)) }).report("a");
  await assert.rejects(
    collector.reporter({ ledger: new Ledger(fileStore(path)) }).report("a"),
    /has your report/,
  );
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(folder), ["kept.json"]);
});

test("a process waits for the lock", async () => {
  const path = join(folder, "shared.json");
  const program = `
    console.log("begun");
    await fileStore(path).lock("ledger", () => console.log("done"));`;
  const child = start(path, program);
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

test("one process removes the lock of a killed one", async () => {
  const path = join(folder, "killed.json");
  writeFileSync(path, ""); // as mktemp makes it
  await once(start(path, 'fileStore(path).lock("ledger", () => process.exit())'), "exit");
  const lock = `${path}.lock`;
  copyFileSync(lock, `${lock}.stale`); // and of one killed while it removed another
  let holders = 0;
  const act = async () => {
    holders += 1;
    await new Promise((wake) => setTimeout(wake, 1));
    assert.equal(holders, 1);
    holders -= 1;
  };
  await Promise.all(Array.from({ length: 9 }, () => fileStore(path).lock("ledger", act)));
  // A container's next process often has the same id.
  if (process.platform === "linux") writeFileSync(lock, `${hostname()}:${process.pid}:1;`);
  assert.deepEqual(await new Ledger(fileStore(path)).entries(), []);
  writeFileSync(lock, ""); // of one killed while it wrote the lock
  utimesSync(lock, 0, 0);
  assert.deepEqual(await new Ledger(fileStore(path)).entries(), []);
  assert.ok(!readdirSync(folder).some((name) => name.includes(".lock")));
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
