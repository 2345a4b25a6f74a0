/* The fast Walsh-Hadamard transform as it is written down: a pass of butterflies for each bit. */

#include <stddef.h>
#include <stdint.h>

void walsh_hadamard(int64_t *x, size_t n)
{
    for (size_t h = 1; h < n; h *= 2)
        for (size_t i = 0; i < n; i += 2 * h)
            for (size_t j = i; j < i + h; j++) {
                int64_t a = x[j], b = x[j + h];
                x[j] = a + b;
                x[j + h] = a - b;
            }
}
