/* Support counting of optimised unary encoding: a carry-save counter over packed bits, the limit
 * that the kernels are measured against (Harley and Seal; Warren, Hacker's Delight, 5-1). */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define WORDS 512 /* the most words of a line */
#define DEPTH 28  /* 16 * 2^28 lines overflow 32 bits long before */

#define FULL_ADDER(sum, carry, a, b, c)                                                                              \
    do {                                                                                                             \
        uint64_t half_ = (a) ^ (b), both_ = (a) & (b), c_ = (c);                                                     \
        carry = both_ | (half_ & c_);                                                                                \
        sum = half_ ^ c_;                                                                                            \
    } while (0)

/* Add sixteen lines to the planes of weight 1, 2, 4, 8; the carries of weight 16 go to `out`. */
static void add_sixteen(const uint64_t *restrict p, size_t w, uint64_t *restrict one, uint64_t *restrict two,
                        uint64_t *restrict four, uint64_t *restrict eight, uint64_t *restrict out)
{
    for (size_t j = 0; j < w; j++) {
        uint64_t o = one[j], t = two[j], f = four[j], e = eight[j], ta, tb, fa, fb, ea, eb, s;
        FULL_ADDER(o, ta, o, p[j], p[w + j]);
        FULL_ADDER(o, tb, o, p[2 * w + j], p[3 * w + j]);
        FULL_ADDER(t, fa, t, ta, tb);
        FULL_ADDER(o, ta, o, p[4 * w + j], p[5 * w + j]);
        FULL_ADDER(o, tb, o, p[6 * w + j], p[7 * w + j]);
        FULL_ADDER(t, fb, t, ta, tb);
        FULL_ADDER(f, ea, f, fa, fb);
        FULL_ADDER(o, ta, o, p[8 * w + j], p[9 * w + j]);
        FULL_ADDER(o, tb, o, p[10 * w + j], p[11 * w + j]);
        FULL_ADDER(t, fa, t, ta, tb);
        FULL_ADDER(o, ta, o, p[12 * w + j], p[13 * w + j]);
        FULL_ADDER(o, tb, o, p[14 * w + j], p[15 * w + j]);
        FULL_ADDER(t, fb, t, ta, tb);
        FULL_ADDER(f, eb, f, fa, fb);
        FULL_ADDER(e, s, e, ea, eb);
        one[j] = o, two[j] = t, four[j] = f, eight[j] = e, out[j] = s;
    }
}

static void add_bits(const uint64_t *line, size_t w, int shift, int64_t *counts)
{
    for (size_t j = 0; j < w; j++)
        for (int i = 0; i < 64; i++)
            counts[64 * j + i] += (int64_t)(line[j] >> i & 1) << shift;
}

/* Add to 64 w counts the bits of m lines of w words, w at most WORDS. */
void oue_carry_save(const uint64_t *lines, size_t m, size_t w, int64_t *counts)
{
    uint64_t low[4][WORDS], plane[DEPTH][WORDS], waiting[DEPTH][WORDS], carry[WORDS];
    memset(low, 0, sizeof low);
    size_t groups = m / 16;
    for (int k = 0; groups >> k; k++)
        memset(plane[k], 0, sizeof plane[k]);
    for (size_t group = 0; group < groups; group++) {
        add_sixteen(lines + 16 * group * w, w, low[0], low[1], low[2], low[3], carry);
        int k = 0;
        for (; group >> k & 1; k++)
            for (size_t j = 0; j < w; j++)
                FULL_ADDER(plane[k][j], carry[j], plane[k][j], waiting[k][j], carry[j]);
        memcpy(waiting[k], carry, 8 * w);
    }
    for (int k = 0; k < 4; k++)
        add_bits(low[k], w, k, counts);
    for (int k = 0; groups >> k; k++) {
        add_bits(plane[k], w, k + 4, counts);
        if (groups >> k & 1)
            add_bits(waiting[k], w, k + 4, counts);
    }
    for (size_t line = 16 * groups; line < m; line++)
        add_bits(lines + line * w, w, 0, counts);
}
