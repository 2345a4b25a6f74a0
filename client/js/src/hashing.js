// OLH's hash, and the public list of seeds that tickets pick from.

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

/**
 * Return the seed that a ticket `id.mac` picks of the first m of the list: place x m >> 64, x the
 * MAC's first 64 bits.
 */
export function seedOfTicket(ticket, m) {
  const mac = ticket
    .slice(ticket.indexOf(".") + 1)
    .replace(/-/g, "+")
    .replace(/_/g, "/");
  const bytes = Uint8Array.from(atob(mac), (character) => character.charCodeAt(0));
  const draw = new DataView(bytes.buffer).getBigUint64(0, true);
  return hashItem(0, Number((draw * BigInt(m)) >> 64n));
}
