"""The set of items whose triples are supported together too often, or too seldom, where its pairs
look honest.

Malicious reports that support r' of r targets support pairs of these too often because they support
each too often, and too seldom because they support no more than r'. An attacker may choose r' and r
so that the two cancel. They then do not cancel in the triples.
"""

import math

import numpy as np

from ldprecover.laws.distributions import log_choose
from ldprecover.types import FloatArray, Int64Array

_LEAST = 4  # items of a set


def triple_scores(triples: Int64Array, p: float, q: float) -> FloatArray:
    """Return how far each triple is from what honest reports have, in standard deviations, less the
    median triple.

    `triples` is (m + 1, m + 1, m + 1): how many of n reports support three of the items, in rising
    order; the last place stands for all reports. For bits that are independent given their user's
    item, the third central moment of three items is 2 (p-q)^3 f_i f_j f_k. The result is symmetric,
    and 0 where two of the three are the same.
    """
    m = len(triples) - 1
    n = float(triples[-1, -1, -1])
    place = np.arange(m)
    rising = place[:, None] < place
    i, j, k = np.nonzero(rising[:, :, None] & rising)
    scores = np.zeros((m, m, m))
    if n < 1 or m < 3:
        return scores
    share = triples[place, -1, -1] / n
    pairs = triples[:, :, -1] / n  # in rising order

    # E(x - mu)(y - nu)(z - xi) = E xyz - mu E yz - nu E xz - xi E xy + 2 mu nu xi
    moment = (
        triples[i, j, k] / n
        - share[i] * pairs[j, k]
        - share[j] * pairs[i, k]
        - share[k] * pairs[i, j]
        + 2 * share[i] * share[j] * share[k]
    )
    held = share - q  # (p-q) f
    deviation = np.sqrt(share * (1 - share))
    scale = deviation[i] * deviation[j] * deviation[k]
    far = moment - 2 * held[i] * held[j] * held[k]
    found = np.divide(math.sqrt(n) * far, scale, out=np.zeros(i.size), where=scale > 0)
    found -= np.median(found)
    for a, b, c in ((i, j, k), (i, k, j), (j, i, k), (j, k, i), (k, i, j), (k, j, i)):
        scores[a, b, c] = found
    return scores


def best_set_of_triples(scores: FloatArray) -> tuple[Int64Array, float]:
    """Return the set of 4 items and more, at most half of them, whose triples' sum stands out most,
    and its score.

    A set of t of the m items whose triples sum to s standard deviations scores s^2/2 - ln C(m, t),
    -1 where s is not positive, as sets of pairs do. Of all sets those are looked at that grow from
    each pair by the item with the largest sum of triples with it. No items, and -1, where there are
    none to choose.
    """
    m = len(scores)
    most = m // 2
    best = np.empty(0, np.int64), -1.0
    if most < _LEAST:
        return best
    first, second = np.triu_indices(m, 1)
    rows = np.arange(first.size)
    order = np.empty((first.size, most), np.int64)
    order[:, 0], order[:, 1] = first, second
    inside = np.zeros((first.size, m), np.bool_)
    inside[rows, first] = inside[rows, second] = True
    added = scores[first, second].copy()  # to the sum of triples, by each further item
    total = np.zeros(first.size)
    for t in range(2, most):
        order[:, t] = np.where(inside, -np.inf, added).argmax(axis=1)
        new = order[:, t]
        total += added[rows, new]
        for old in order[:, :t].T:
            added += scores[old, new]
        inside[rows, new] = True
        if t + 1 < _LEAST:
            continue
        top = int(total.argmax())
        s = float(total[top]) / math.sqrt(math.comb(t + 1, 3))
        score = s * s / 2 - log_choose(m, t + 1) if s > 0 else -1.0
        if score > best[1]:
            best = np.sort(order[top, : t + 1]), score
    return best
