// Where a ledger is kept: texts by name, and a lock that nobody else holds meanwhile.
//
// A store has get(name) -> text or null, set(name, text), and lock(name, act), which runs act
// alone. Any of them may return a promise. What set has taken must outlive the page or process.
import { LedgerError } from "./errors.js";

const DATABASE = "ldprecover";
const TABLE = "ledgers";

/**
 * Keep the ledger in the browser's database, on the disk before a report is sent: the default of
 * pages. It is of one origin and one browser.
 */
export function browserStore() {
  const open = () =>
    settled("the browser's database cannot be opened", (done, fail) => {
      const request = globalThis.indexedDB.open(DATABASE, 1);
      request.onupgradeneeded = () => request.result.createObjectStore(TABLE);
      request.onsuccess = () => done(request.result);
      request.onerror = () => fail(request.error);
      request.onblocked = () => fail(new Error("another page keeps it"));
    });
  const transact = async (mode, ask) => {
    const database = await open();
    try {
      return await settled("the browser's database failed", (done, fail) => {
        // "strict": written through to the disk, not only handed to the system.
        const transaction = database.transaction(TABLE, mode, { durability: "strict" });
        const request = ask(transaction.objectStore(TABLE));
        transaction.oncomplete = () => done(request.result);
        transaction.onabort = () => fail(transaction.error ?? new Error("it gave up"));
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
 * Keep the ledger in localStorage. Browsers write that to the disk when it suits them, often
 * seconds later: a browser that dies before then has forgotten a report that may have been sent.
 */
export function localStore() {
  return {
    get: (name) => globalThis.localStorage.getItem(name),
    set: (name, text) => globalThis.localStorage.setItem(name, text),
    lock: webLock,
  };
}

/**
 * Keep the ledger in memory: for tests and demonstrations, since the next page may report again.
 */
export function memoryStore() {
  const texts = new Map();
  return {
    get: (name) => texts.get(name) ?? null,
    set: (name, text) => void texts.set(name, text),
    lock: queue(),
  };
}

/**
 * Return a lock of this process: calls run one after another, those of one name and all others
 * alike.
 */
export function queue() {
  let last = Promise.resolve();
  return (name, act) => {
    const turn = last.then(act);
    last = turn.catch(() => undefined);
    return turn;
  };
}

function webLock(name, act) {
  const locks = globalThis.navigator?.locks;
  if (!locks)
    throw new LedgerError("this browser has no Web Locks, so that two pages could report at once");
  return locks.request(name, act);
}

async function settled(what, start) {
  try {
    return await new Promise(start);
  } catch (error) {
    throw new LedgerError(`${what}: ${error?.message ?? error}`);
  }
}
