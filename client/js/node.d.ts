import type { Store } from "./ldprecover.js";

/**
 * Keep the ledger in a file that only its user can read, on the disk before a report is sent.
 * Processes that share it wait for each other by the file `<path>.lock`, and remove a killed one's.
 */
export function fileStore(path: string): Store;
