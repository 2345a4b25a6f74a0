// For Node only: a ledger in a file.
import { open, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname } from "node:path";

import { LedgerError } from "./ldprecover.js";
import { queue } from "./src/stores.js";

const LOCK_WAIT = 50; // milliseconds between two tries to lock
const MAX_TRIES = 200;
const HOLDER = /^([^:]+):([1-9]\d*):(\w*);$/; // host, process, its start

/**
 * Keep the ledger in a file that only its user can read; it is on disk before a report is sent.
 *
 * Processes share it by the lock `<path>.lock`, a file that names its host and process. The next
 * process of that host removes the lock of one that was killed. Others, and those that wait for
 * a living one, throw after ten seconds, and nothing is perturbed.
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
    // Writes are atomic: an empty file was made by something else, as mktemp does.
    return JSON.parse((await readFile(path, "utf8")) || "{}");
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
      const holder = `${hostname()}:${process.pid}:${await startOf(process.pid)};`;
      await writeFile(path, holder, { flag: "wx", mode: 0o600 });
      break;
    } catch (error) {
      if (error.code !== "EEXIST")
        throw new LedgerError(`${path} cannot be made: ${error.message}`);
      if (await isStale(path)) {
        // Under a second lock, else it could be the lock of the next process by now.
        await withLock(`${path}.stale`, async () => (await isStale(path)) && rm(path));
        continue;
      }
      if (attempt >= MAX_TRIES) {
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

/** Return whether the process that holds a lock, of this host, has ended. */
async function isStale(path) {
  const read = () => readFile(path, "utf8").catch(() => null);
  const holder = await read();
  // It may have released the lock before it ended; another process may hold the lock since.
  return holder !== null && (await hasEnded(path, holder)) && holder === (await read());
}

async function hasEnded(path, holder) {
  const [, host, pid, start] = HOLDER.exec(holder) ?? [];
  if (!host) {
    // Its process is writing it now, or was killed there.
    const written = await stat(path).catch(() => null);
    return written !== null && Date.now() - written.mtimeMs > LOCK_WAIT * MAX_TRIES;
  }
  if (host !== hostname()) return false;
  try {
    process.kill(Number(pid), 0); // only asks
  } catch (error) {
    return error.code === "ESRCH";
  }
  const now = await startOf(pid);
  return Boolean(start && now && start !== now);
}

/** Return when a process began, which tells it from others of its id; "" where nothing says so. */
async function startOf(pid) {
  const stat = await readFile(`/proc/${pid}/stat`, "latin1").catch(() => "");
  const [, state, ...rest] = stat.slice(stat.lastIndexOf(")")).split(" ");
  const isZombie = state === "Z" && rest[16] === "1"; // else a thread of it may still write
  return isZombie ? "ended" : (rest[18] ?? "");
}
