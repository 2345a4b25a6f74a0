// For Node only: a ledger in a file.
import { open, readFile, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";

import { LedgerError } from "./ldprecover.js";
import { queue } from "./src/stores.js";

const LOCK_WAIT = 50; // milliseconds between two tries to lock
const MAX_TRIES = 200;

/**
 * Keep the ledger in a file that only its user can read; it is on disk before a report is sent.
 *
 * Processes share it by the lock file `<path>.lock`. A process that is killed leaves its lock: others
 * throw after ten seconds, and nothing is perturbed.
 */
export function fileStore(path) {
  const inOrder = queue();
  return {
    async get(name) {
      return (await read(path))[name] ?? null;
    },
    async set(name, text) {
      const texts = { ...(await read(path)), [name]: text };
      const part = `${path}.part`;
      await writeThrough(part, JSON.stringify(texts));
      await rename(part, path);
      await flush(dirname(path));
    },
    lock: (name, act) => inOrder(name, () => withLock(`${path}.lock`, act)),
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

async function writeThrough(path, text) {
  const file = await open(path, "w", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function flush(folder) {
  const directory = await open(folder, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

async function withLock(path, act) {
  for (let attempt = 0; ; attempt += 1) {
    try {
      await (await open(path, "wx", 0o600)).close();
      break;
    } catch (error) {
      if (error.code !== "EEXIST")
        throw new LedgerError(`${path} cannot be made: ${error.message}`);
      if (attempt === MAX_TRIES) {
        throw new LedgerError(
          `another process holds the ledger; if none does, one was killed: delete ${path}`,
        );
      }
      await new Promise((wake) => setTimeout(wake, LOCK_WAIT));
    }
  }
  try {
    return await act();
  } finally {
    await rm(path, { force: true });
  }
}
