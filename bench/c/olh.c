/* Support counting of optimised local hashing: the limit that the kernels are measured against.
 *
 * Seeds and buckets come as two arrays of 32 bits. Items are the outer loop and a block of reports
 * that stays in the first-level cache is the inner one, which the compiler vectorises. */

#include <stddef.h>
#include <stdint.h>

#define PRIME2 0x85EBCA77u
#define PRIME3 0xC2B2AE3Du
#define PRIME4 0x27D4EB2Fu
#define PRIME5 0x165667B1u
#define BLOCK 2048

/* xxHash32 of the four bytes of an item, given as item * PRIME3. */
static inline uint32_t hash(uint32_t seed, uint32_t product)
{
    uint32_t h = seed + (PRIME5 + 4u) + product;
    h = ((h << 17) | (h >> 15)) * PRIME4;
    h = (h ^ (h >> 15)) * PRIME2;
    h = (h ^ (h >> 13)) * PRIME3;
    return h ^ (h >> 16);
}

static inline size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* As the protocol is written: bucket = (hash * g) >> 32. */
void olh_multiply(const uint32_t *seeds, const uint32_t *buckets, size_t n, uint32_t d, uint32_t g, int64_t *counts)
{
    for (size_t start = 0; start < n; start += BLOCK) {
        size_t stop = start + least(BLOCK, n - start);
        for (uint32_t v = 0; v < d; v++) {
            uint32_t product = v * PRIME3, hits = 0;
            for (size_t i = start; i < stop; i++)
                hits += (uint32_t)(((uint64_t)hash(seeds[i], product) * g) >> 32) == buckets[i];
            counts[v] += hits;
        }
    }
}

/* The same test as a range of hashes, without a multiplication of 64 bits. */
void olh_range(const uint32_t *seeds, const uint32_t *buckets, size_t n, uint32_t d, uint32_t g, int64_t *counts)
{
    uint32_t low[BLOCK], width[BLOCK];
    for (size_t start = 0; start < n; start += BLOCK) {
        size_t m = least(BLOCK, n - start);
        for (size_t i = 0; i < m; i++) {
            uint64_t b = buckets[start + i], lo = ((b << 32) + g - 1) / g;
            low[i] = (uint32_t)lo;
            width[i] = (uint32_t)((((b + 1) << 32) + g - 1) / g - lo);
        }
        for (uint32_t v = 0; v < d; v++) {
            uint32_t product = v * PRIME3, hits = 0;
            for (size_t i = 0; i < m; i++)
                hits += hash(seeds[start + i], product) - low[i] < width[i];
            counts[v] += hits;
        }
    }
}
