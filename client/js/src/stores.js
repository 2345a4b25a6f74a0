// Stores for a ledger: texts by name, and a lock.
//
// A store has get(name) -> text or null, set(name, text), and lock(name, act), which runs act under
// a lock. Each may return a promise. A text that was set must survive the page or process.
import { LedgerError } from "./errors.js";

const DATABASE = "ldprecover";
const TABLE = "ledgers";

/**
 * Keep the ledger in the browser's database, the default of pages: it is on disk before a report is
 * sent. The database belongs to one origin and browser.
 */
export function browserStore() {
  const open = () =>
    settled("the browser's database cannot be opened", (resolve, reject) => {
      const request = globalThis.indexedDB.open(DATABASE, 1);
      request.onupgradeneeded = () => request.result.createObjectStore(TABLE);
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
      request.onblocked = () => reject(new Error("another page keeps it"));
    });
  const transact = async (mode, ask) => {
    const database = await open();
    try {
      return await settled("the browser's database failed", (resolve, reject) => {
        // "strict": flushed to the disk, not only passed to the operating system.
        const transaction = database.transaction(TABLE, mode, { durability: "strict" });
        const request = ask(transaction.objectStore(TABLE));
        transaction.oncomplete = () => resolve(request.result);
        transaction.onabort = () => reject(transaction.error ?? new Error("it gave up"));
      });
    } finally {
      database.close();
    }
  };
  return {
    get: async (name) => (await transact("readonly", (table) => table.get(name))) ?? null,
    set: (name, text) => transact("readwrite", (table) => table.put(text, name)),
    lock: webLock,
  };
}

/**
 * Keep the ledger in localStorage. Browsers write that to disk seconds later: a browser that crashes
 * before then loses a report that may have been sent.
 */
export function localStore() {
  return {
    get: (name) => globalThis.localStorage.getItem(name),
    set: (name, text) => globalThis.localStorage.setItem(name, text),
    lock: webLock,
  };
}

/** Keep the ledger in memory, for tests and demonstrations: the next page may report again. */
export function memoryStore() {
  const texts = new Map();
  return {
    get: (name) => texts.get(name) ?? null,
    set: (name, text) => void texts.set(name, text),
    lock: queue(),
  };
}

/** Return a lock within this process, which ignores the name: calls run one after another. */
export function queue() {
  let last = Promise.resolve();
  return (name, act) => {
    const turn = last.then(act);
    last = turn.catch(() => undefined);
    return turn;
  };
}

const lockOfPage = queue();

function webLock(name, act) {
  const locks = globalThis.navigator?.locks;
  if (locks) return locks.request(name, act);
  // A page over plain http has neither, and reports to practice rounds alone.
  if (!globalThis.crypto?.subtle) return lockOfPage(name, act);
  throw new LedgerError("this browser has no Web Locks, so two pages could report together");
}

async function settled(failure, executor) {
  try {
    return await new Promise(executor);
  } catch (error) {
    throw new LedgerError(`${failure}: ${error?.message ?? error}`);
  }
}
