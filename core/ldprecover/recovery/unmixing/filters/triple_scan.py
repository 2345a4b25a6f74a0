"""Finds the set of items whose triples are supported together too often or too seldom.

Malicious reports that support r' of r targets support their pairs too often, because they support
each target too often, and too seldom, because they support no more than r'. An attacker can choose
r' and r so that the two effects cancel in the pairs. They do not cancel in the triples as well.
"""

import math

import numpy as np

from ldprecover.distributions import log_choose
from ldprecover.recovery.unmixing.filters.pair_scan import NO_SCORE
from ldprecover.types import FloatArray, Int64Array

_LEAST = 4  # items of a set: three items are a triple


def triple_scores(triples: Int64Array, p: float, q: float) -> FloatArray:
    """Return the excess of each triple over honest ones, in standard deviations, less the median.

    `triples`, (m + 1, m + 1, m + 1), counts the reports that support three of the items, with
    indices in rising order; index m stands for no condition. For bits that are independent given
    the user's item, the third central moment of three items is 2 (p-q)^3 f_i f_j f_k. The result is
    symmetric, and 0 if two of the three items are the same.
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
    scaled = share - q  # (p-q) f
    deviation = np.sqrt(share * (1 - share))
    scale = deviation[i] * deviation[j] * deviation[k]
    excess = moment - 2 * scaled[i] * scaled[j] * scaled[k]
    rising_scores = np.divide(math.sqrt(n) * excess, scale, out=np.zeros(i.size), where=scale > 0)
    rising_scores -= np.median(rising_scores)
    for a, b, c in ((i, j, k), (i, k, j), (j, i, k), (j, k, i), (k, i, j), (k, j, i)):
        scores[a, b, c] = rising_scores
    return scores


def best_set_of_triples(scores: FloatArray) -> tuple[Int64Array, float]:
    """Return the set of at least 4 items, at most half of them, with the best score, and its score.

    A set of t of the m items whose triples sum to s standard deviations scores s^2/2 - ln C(m, t),
    or -1 if s is not positive, as sets of pairs do. The search is not exhaustive: sets grow from
    each pair by the item with the largest sum of triples with it. Without a set it returns no items
    and -1.
    """
    m = len(scores)
    largest = m // 2
    best = np.empty(0, np.int64), NO_SCORE
    if largest < _LEAST:
        return best
    first, second = np.triu_indices(m, 1)
    rows = np.arange(first.size)
    order = np.empty((first.size, largest), np.int64)
    order[:, 0], order[:, 1] = first, second
    inside = np.zeros((first.size, m), np.bool_)
    inside[rows, first] = inside[rows, second] = True
    added = scores[first, second].copy()  # what each further item adds to the sum of triples
    total = np.zeros(first.size)
    for t in range(2, largest):
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
        score = s * s / 2 - log_choose(m, t + 1) if s > 0 else NO_SCORE
        if score > best[1]:
            best = np.sort(order[top, : t + 1]), score
    return best
