// OLH's hash.

const [PRIME2, PRIME3, PRIME4, PRIME5] = [0x85ebca77, 0xc2b2ae3d, 0x27d4eb2f, 0x165667b1];

/**
 * Return xxHash32 of an item as four little-endian bytes; seed, item and hash are 32-bit unsigned.
 */
export function hashItem(seed, item) {
  // For four bytes xxHash32 is one round and the final avalanche.
  let h = (seed + PRIME5 + 4 + Math.imul(item, PRIME3)) | 0;
  h = Math.imul((h << 17) | (h >>> 15), PRIME4);
  h = Math.imul(h ^ (h >>> 15), PRIME2);
  h = Math.imul(h ^ (h >>> 13), PRIME3);
  return (h ^ (h >>> 16)) >>> 0;
}

/**
 * Return (hash * g) >> 32, the bucket of an item under a seed. The product is below 2^48, which a
 * double represents exactly.
 */
export function bucketOf(seed, item, g) {
  return Math.floor((hashItem(seed, item) * g) / 2 ** 32);
}
