// A ledger in a file.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";

import { Ledger, LedgerError } from "../ldprecover.js";
import { fileStore } from "../node.js";
import { Collector } from "./helpers.js";

let folder;

before(() => {
  folder = mkdtempSync(join(tmpdir(), "ldprecover-"));
});

after(() => rmSync(folder, { recursive: true }));

test("a file keeps the ledger for the next process, and only its user can read it", async () => {
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

test("processes that report at once make one report", async () => {
  const path = join(folder, "shared.json");
  const program = `
    const { Ledger } = await import(${JSON.stringify(new URL("../ldprecover.js", import.meta.url).href)});
    const { fileStore } = await import(${JSON.stringify(new URL("../node.js", import.meta.url).href)});
    const round = { id: "R1", name: "r", digest: "d", epsilon: 1 };
    const claim = { round, serverUrl: "u", key: String(process.pid), perturb: () => "00" };
    const { isNew } = await new Ledger(fileStore(${JSON.stringify(path)})).claim(claim);
    console.log(isNew);`;
  const run = () => promisify(execFile)(process.execPath, ["--input-type=module", "-e", program]);
  const said = (await Promise.all([run(), run(), run()])).map(({ stdout }) => stdout.trim());
  assert.deepEqual(said.sort(), ["false", "false", "true"]);
});

test("a file that is no ledger is left as it is", async () => {
  const path = join(folder, "other.json");
  writeFileSync(path, "a letter");
  await assert.rejects(new Ledger(fileStore(path)).entries(), LedgerError);
  assert.equal(readFileSync(path, "utf8"), "a letter");
});

test("a folder that is not there is a LedgerError", async () => {
  await assert.rejects(
    new Ledger(fileStore(join(folder, "none", "x.json"))).entries(),
    LedgerError,
  );
});
