"""Finds the set of items whose pairs are supported together too often.

Malicious reports that share a set of items lift all its pairs a little; no single pair need stand
out. Those that support r' of r targets support their pairs too often, because they support each
target too often, and too seldom, because they support no more than r'. An attacker can choose r'
and r so that the two effects cancel in the pairs: such a set is not found.
"""

import math

import numpy as np

from ldprecover.distributions import log_choose
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.unmixing.filters.rules import MOST_ITEMS, other_items_laws, set_laws
from ldprecover.types import FloatArray, Int64Array

_LEAST = 3  # items of a set: two items are a pair


def pair_scores(pairs: Int64Array, oracle: FrequencyOracle) -> FloatArray:
    """Return the excess of each pair over honest reports, in standard deviations, less the median.

    `pairs`, (m + 1, m + 1), counts the reports that support both of two items; index m stands for
    no condition. An honest report supports both items with a probability that depends on whether
    its user holds one of them. The median is subtracted because reports of unusual sizes move all
    pairs alike. The diagonal is zero.
    """
    n = float(pairs[-1, -1])
    m = len(pairs) - 1
    if n < 1 or m < 2:
        return np.zeros((m, m))
    share = np.diag(pairs)[:-1] / n
    p, q = oracle.p, oracle.q
    frequencies = (share - q) / (p - q)
    own_and_other = p * other_items_laws(oracle, 1)[0][1]
    two_others = float(set_laws(oracle, 2)[0, 2])
    deviations = np.sqrt(share * (1 - share))
    holders = np.add.outer(frequencies, frequencies)
    honest = own_and_other * holders + two_others * (1 - holders)
    scale = np.outer(deviations, deviations)
    scores = np.divide(
        math.sqrt(n) * (pairs[:-1, :-1] / n - honest), scale, out=np.zeros((m, m)), where=scale > 0
    )
    scores -= np.median(scores[~np.eye(m, dtype=np.bool_)])
    np.fill_diagonal(scores, 0)
    return scores


def best_set(scores: FloatArray) -> tuple[Int64Array, float]:
    """Return the set of 3 to 24 items, at most half of them, with the best score, and its score.

    `scores` is symmetric with a zero diagonal. A set of t of the m items whose pairs sum to s
    standard deviations scores s^2/2 - ln C(m, t): its log-likelihood gain less the log of the
    number of choices. The sets are those that grow from each item by the one whose pairs with the
    set sum to most. Without a set of a positive sum the result is empty, and scores 0.
    """
    m = len(scores)
    rows, best = np.arange(m), (np.empty(0, np.int64), 0.0)
    sums, totals = scores.copy(), np.zeros(m)
    sums[rows, rows] = -np.inf
    order = rows[:, None]
    for t in range(2, min(MOST_ITEMS, max(m // 2, _LEAST), m - 2) + 1):
        added = sums.argmax(axis=1)
        totals += sums[rows, added]
        sums += scores[added]
        sums[rows, added] = -np.inf
        order = np.column_stack([order, added])
        first = int(totals.argmax())
        s = max(float(totals[first]), 0.0) / math.sqrt(math.comb(t, 2))
        score = s * s / 2 - log_choose(m, t)
        if t >= _LEAST and score > best[1]:
            best = np.sort(order[first]), score
    return best
