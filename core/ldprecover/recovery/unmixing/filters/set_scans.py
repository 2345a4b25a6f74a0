"""Finds the set of items whose pairs, or triples, are supported together too often or too seldom.

Malicious reports that share a set of items lift all its pairs a little; no single pair need stand
out. Those that support r' of r targets support their pairs too often, because they support each
target too often, and too seldom, because they support no more than r'. An attacker can choose r'
and r so that the two effects cancel in the pairs. They do not cancel in the triples as well.
"""

import math

import numpy as np

from ldprecover.distributions import log_choose
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.unmixing.filters.rules import MOST_ITEMS, other_items_laws, set_laws
from ldprecover.types import FloatArray, Int64Array

NO_SCORE = -1.0
"""The score of a set whose pairs or triples do not stand out."""

_LEAST, _LEAST_OF_TRIPLES = 3, 4  # items of a set: two items are a pair, three are a triple
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
    largest = min(MOST_ITEMS, m // 2)
    if largest < _LEAST:
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
    """Return the score of t of m items of which `number` pairs or triples sum to `total`."""
    s = total / math.sqrt(number)
    return s * s / 2 - log_choose(m, t) if s > 0 else NO_SCORE


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
    if largest < _LEAST_OF_TRIPLES:
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
        if t + 1 < _LEAST_OF_TRIPLES:
            continue
        top = int(total.argmax())
        score = _score(float(total[top]), math.comb(t + 1, 3), m, t + 1)
        if score > best[1]:
            best = np.sort(order[top, : t + 1]), score
    return best
