// Uniform 64-bit words, and exactly uniform integers from them.

const MAX_RANDOM_BYTES = 65536; // that one call of crypto.getRandomValues may fill

/** Return the platform's cryptography; a page over plain http gets it without `subtle`. */
export async function systemCrypto() {
  // Node 18 has it only as a module.
  return globalThis.crypto ?? (await import("node:crypto")).webcrypto;
}

/** Return n -> n independent uniform 64-bit words from a cryptographic source. */
export function wordsFrom(crypto) {
  return (n) => {
    const words = new BigUint64Array(n);
    const bytes = new Uint8Array(words.buffer);
    for (let start = 0; start < bytes.length; start += MAX_RANDOM_BYTES) {
      crypto.getRandomValues(bytes.subarray(start, start + MAX_RANDOM_BYTES));
    }
    return words;
  };
}

/** Return the elements in an order of which each is equally likely (Fisher and Yates). */
export function shuffled(elements, words) {
  const order = [...elements];
  for (let i = order.length - 1; i > 0; i -= 1) {
    const j = below(i + 1, words);
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
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
