// Uniform 64-bit words, and exactly uniform integers made of them.
import { ArgumentError } from "./errors.js";

const AT_ONCE = 65536; // bytes that crypto.getRandomValues fills in one call

/**
 * Return the platform's cryptography. Throws ArgumentError where there is none: browsers keep it
 * from pages that somebody could change on their way.
 */
export async function systemCrypto() {
  // Node 18 has it as a module alone.
  const found = globalThis.crypto ?? (await import("node:crypto")).webcrypto;
  if (!found?.subtle) {
    throw new ArgumentError("a page that reports must come over https, or from this device");
  }
  return found;
}

/** Return n -> n independent uniform 64-bit words from a cryptographic source. */
export function wordsFrom(crypto) {
  return (n) => {
    const words = new BigUint64Array(n);
    const bytes = new Uint8Array(words.buffer);
    for (let at = 0; at < bytes.length; at += AT_ONCE) {
      crypto.getRandomValues(bytes.subarray(at, at + AT_ONCE));
    }
    return words;
  };
}

/** Return an exactly uniform integer from 0 to k - 1; words in the biased tail are drawn again. */
export function below(k, words) {
  const range = BigInt(k);
  const limit = ((1n << 64n) / range) * range;
  for (;;) {
    const [word] = words(1);
    if (word < limit) return Number(word % range);
  }
}
