"""Finds the set of items whose pairs are supported together too often or too seldom.

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

NO_SCORE = -1.0
"""The score of a set whose pairs do not stand out."""

_LEAST = 3  # items of a set: two items are a pair
_STEPS = 20  # maximum improvements of one candidate: most stop after two or three


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
    number of choices; -1 if s is not positive. The search is not exhaustive. It looks at the sets
    grown greedily from each item and at the tops of the first two eigenvectors, each improved by
    exchanging items for those with larger row sums until nothing changes. Without a set it returns
    no items and -1.
    """
    m = len(scores)
    largest = min(MOST_ITEMS, max(m // 2, _LEAST))
    if m <= _LEAST:
        return np.empty(0, np.int64), NO_SCORE
    best = _best_of(scores, _grown(scores, largest), (np.empty(0, np.int64), -math.inf))
    _, vectors = np.linalg.eigh(scores)
    starts = [sign * vectors[:, -i] for i in (1, 2) for sign in (1, -1)]
    tops = np.stack([np.argsort(-start, kind="stable") for start in starts])
    best = _best_of(scores, _improved(scores, tops, largest), best)
    around = np.argsort(-scores[:, best[0]].sum(axis=1), kind="stable")[None]
    return _best_of(scores, _improved(scores, around, largest), best)


def _grown(scores: FloatArray, largest: int) -> list[Int64Array]:
    """Return, for each size t, the sets grown from each item by the largest sum of pairs."""
    m = len(scores)
    rows = np.arange(m)
    order = np.empty((m, largest), np.int64)
    order[:, 0] = rows
    sums = scores.copy()
    sums[rows, rows] = -np.inf
    for t in range(1, largest):
        order[:, t] = sums.argmax(axis=1)
        sums += scores[order[:, t]]
        sums[rows, order[:, t]] = -np.inf
    return [order[:, :t] for t in range(_LEAST, largest + 1)]


def _improved(scores: FloatArray, orders: Int64Array, largest: int) -> list[Int64Array]:
    """Return, for each size t, the first t items of each order, improved by exchanges."""
    improved = []
    for t in range(_LEAST, largest + 1):
        sets = np.sort(orders[:, :t], axis=1)
        for _ in range(_STEPS):
            sums = scores[sets].sum(axis=1)
            better = np.sort(np.argsort(-sums, axis=1, kind="stable")[:, :t], axis=1)
            if np.array_equal(better, sets):
                break
            sets = better
        improved.append(sets)
    return improved


def _best_of(
    scores: FloatArray, candidates: list[Int64Array], best: tuple[Int64Array, float]
) -> tuple[Int64Array, float]:
    """Return the best of the candidates, one matrix of sets per size, and of the best so far."""
    for sets in candidates:
        t = sets.shape[1]
        sums = scores[sets[:, :, None], sets[:, None, :]].sum(axis=(1, 2)) / 2
        first = int(sums.argmax())
        score = _score(float(sums[first]), math.comb(t, 2), len(scores), t)
        if score > best[1]:
            best = np.sort(sets[first]), score
    return best


def _score(total: float, number: int, m: int, t: int) -> float:
    """Return the score of t of m items of which `number` pairs sum to `total`."""
    s = total / math.sqrt(number)
    return s * s / 2 - log_choose(m, t) if s > 0 else NO_SCORE
