"""The paper's setting.

Every test here states how often it would fail on right code. Their sum is below 1e-6; most are
seeded besides, so that only a change of code or of numpy's streams draws other samples.
"""

import numpy as np

D = 102  # items of the paper's IPUMS setting (VI-A)


def zipf(n: int) -> np.ndarray:
    """Return numbers of users for each of D items, n together, in Zipf(1.02) proportions."""
    weights = 1 / np.arange(1, D + 1) ** 1.02
    shares = n * weights / weights.sum()
    counts = np.floor(shares).astype(np.int64)
    counts[np.argsort(counts - shares)[: n - counts.sum()]] += 1
    return counts
