// What only Node has: a ledger in a file.
import { open, readFile, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";

import { LedgerError } from "./ldprecover.js";
import { queue } from "./src/stores.js";

const WAIT = 50; // milliseconds between two looks at a lock
const PATIENCE = 200; // looks

/**
 * Keep the ledger in a file that only its user can read, on the disk before a report is sent.
 *
 * Processes that share it wait for each other by the file `<path>.lock`. One that is killed while it
 * holds the lock leaves it: the next one says so after ten seconds, and nothing is perturbed.
 */
export function fileStore(path) {
  const inTurn = queue();
  return {
    async get(name) {
      return (await read(path))[name] ?? null;
    },
    async set(name, text) {
      const texts = { ...(await read(path)), [name]: text };
      const part = `${path}.part`;
      await written(part, JSON.stringify(texts));
      await rename(part, path);
      await flushed(dirname(path));
    },
    lock: (name, act) => inTurn(name, () => locked(`${path}.lock`, act)),
  };
}

async function read(path) {
  try {
    return JSON.parse(await readFile(path, "utf8"));
  } catch (error) {
    if (error.code === "ENOENT") return {};
    throw new LedgerError(`${path} cannot be read as a ledger: ${error.message}`);
  }
}

async function written(path, text) {
  const file = await open(path, "w", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function flushed(folder) {
  const directory = await open(folder, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

async function locked(path, act) {
  for (let look = 0; ; look += 1) {
    try {
      await (await open(path, "wx", 0o600)).close();
      break;
    } catch (error) {
      if (error.code !== "EEXIST")
        throw new LedgerError(`${path} cannot be made: ${error.message}`);
      if (look === PATIENCE) {
        throw new LedgerError(
          `another process holds the ledger; if none does, one was killed: delete ${path}`,
        );
      }
      await new Promise((wake) => setTimeout(wake, WAIT));
    }
  }
  try {
    return await act();
  } finally {
    await rm(path, { force: true });
  }
}
