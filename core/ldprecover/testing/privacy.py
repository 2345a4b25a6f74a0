"""Checks of a protocol's privacy: its probabilities, and the reports that it makes.

Passing is no proof: a report may reveal its user's item in ways that no test here examines.
"""

import math

import numpy as np

from ldprecover.counting.tiles import tiles
from ldprecover.distributions import upper_means
from ldprecover.protocols.oracle import FrequencyOracle
from ldprecover.testing.tolerances import RATE, assert_counts
from ldprecover.types import Int64Array, Reports, Rng

_SEEN = 0.03  # relative error of p that is detected almost surely
# Bernstein allows 6.6 deviations, so a mean this far off is missed once in 3,000 times.
_DEVIATIONS = 10.0
_MOST_USERS, _MOST_CELLS = 2_000_000, 30_000_000  # this many (report, item) pairs take seconds
_BLOCK_CELLS = 1 << 22  # (report, item) pairs of a block of reports
_ROUNDING = 1e-9
_OFTEN = 40  # values with fewer reports under both items are not tested


def check_epsilon(oracle: FrequencyOracle, rng: Rng) -> None:
    """No event that p, q and the traits determine exceeds the ratio e^epsilon between two items."""
    p, q, limit = oracle.p, oracle.q, math.exp(oracle.epsilon)
    odds = {
        "supporting an item, p/q": p / q,
        "not supporting an item, (1-q)/(1-p)": (1 - q) / (1 - p) if p < 1 else math.inf,
    }
    if oracle.traits.independent_bits:
        odds["supporting one item and not another, p(1-q)/(q(1-p))"] = (
            p * (1 - q) / (q * (1 - p)) if p < 1 else math.inf
        )
    for event, ratio in odds.items():
        within = ratio <= limit * (1 + _ROUNDING)
        assert within, (
            f"the probability of {event}, differs by the factor {ratio:.6g}, and e^epsilon is "
            f"{limit:.6g}"
        )


def check_support_probabilities(oracle: FrequencyOracle, rng: Rng) -> None:
    """Reports support the user's item with probability p and others with q, within e^epsilon.

    For two items' users it compares which of the two items their reports support, the values of the
    reports, and their bytes. There are enough users to detect that p is 3 % off, at most two
    million.
    """
    d, n = oracle.domain_size, _users(oracle)
    values: list[tuple[Reports, Reports]] = []
    patterns = np.zeros((2, 4), np.int64)
    for which, item in enumerate((0, d - 1)):
        counts, blocks = np.zeros(d, np.int64), []
        for users in tiles((n, d), _BLOCK_CELLS):
            reports = oracle.perturb(np.full(users.stop - users.start, item), rng)
            counts += oracle.support_counts(reports)
            both = oracle.supports(reports, np.array([0, d - 1]))
            patterns[which] += np.bincount(2 * both[:, 0] + both[:, 1], minlength=4)
            blocks.append(reports)
        expected = np.full(d, oracle.q)
        expected[item] = oracle.p
        assert_counts(counts, expected, n)
        rows = np.concatenate(blocks)
        values.append((rows, np.ascontiguousarray(rows).view(np.uint8).reshape(n, -1)))
    _assert_within(oracle, patterns, n, "supporting one, both or neither of two items")
    _assert_within(oracle, _value_counts(values[0][1], values[1][1]), n, "a report's value")
    for position in range(values[0][1].shape[1]):
        counted = np.stack([np.bincount(rows[:, position], minlength=256) for _, rows in values])
        _assert_within(oracle, counted, n, f"a report's byte {position}")


def check_randomness(oracle: FrequencyOracle, rng: Rng) -> None:
    """Without a generator reports differ each time; with two in the same state they are equal."""
    # Equal reports of one item agree on whether they support it, which bounds their probability.
    assert oracle.p < 1, (
        "p must be below 1: a report that always supports its user's item is not private"
    )
    agree = oracle.p**2 + (1 - oracle.p) ** 2
    n = math.ceil(math.log(1 / RATE) / -math.log(agree))
    items = np.zeros(n, np.int64)
    same = np.array_equal(oracle.perturb(items), oracle.perturb(items))
    assert not same, (
        "perturb without a generator makes the same reports again: it must draw from the "
        "operating system"
    )
    items, state = items[:100], int(rng.integers(1 << 32))
    one, other = (oracle.perturb(items, np.random.default_rng(state)) for _ in range(2))
    assert np.array_equal(one, other), (
        "perturb must draw from the generator that it is given, and from nothing else"
    )


def _users(oracle: FrequencyOracle) -> int:
    """Return the number of users that reveals an error of 3 % in p, within bounds."""
    needed = math.ceil((_DEVIATIONS / _SEEN) ** 2 * (1 - oracle.p) / oracle.p)
    return max(20_000, min(needed, _MOST_USERS, _MOST_CELLS // oracle.domain_size))


def _value_counts(one: Reports, other: Reports) -> Int64Array:
    """Return how often each value comes among the rows of bytes of two arrays, without those that
    hardly come.
    """
    whole = np.concatenate([one, other])
    _, value_of_row = np.unique(
        whole.view(np.dtype((np.void, whole.shape[1]))).reshape(-1), return_inverse=True
    )
    counts = np.stack(
        [
            np.bincount(part, minlength=value_of_row.max() + 1)
            for part in np.split(value_of_row, [len(one)])
        ]
    )
    return counts[:, counts.sum(axis=0) >= _OFTEN]


def _assert_within(oracle: FrequencyOracle, counts: Int64Array, n: int, event: str) -> None:
    """Assert that no column's probability differs by more than e^epsilon between the two rows.

    Chernoff bounds both frequencies: a protocol within e^epsilon fails once in 10^9.
    """
    limit, log_tail = math.exp(oracle.epsilon), math.log(2 / RATE)
    # The highest plausible probability of each event, and the lowest: by that of its contrary.
    highest = upper_means(counts.astype(np.float64), n, log_tail)
    lowest = 1 - upper_means((n - counts).astype(np.float64), n, log_tail)
    for one, other in ((0, 1), (1, 0)):
        for column in np.flatnonzero(lowest[one] > limit * highest[other]):
            factor = lowest[one, column] / highest[other, column]
            raise AssertionError(
                f"the probability of {event}, differs by a factor of at least {factor:.4g} under "
                f"two items, and e^epsilon is {limit:.4g}: {counts[one, column]} and "
                f"{counts[other, column]} of {n} reports"
            )
