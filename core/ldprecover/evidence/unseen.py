"""The largest gain of an attack that the tests of a round do not see."""

import math
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from ldprecover.distributions import binomial_law, log_choose
from ldprecover.estimation.theory import worst_change
from ldprecover.protocols import FrequencyOracle
from ldprecover.sentences import percent
from ldprecover.types import FloatArray, Int64Array

SHARE = 0.05
"""Share of malicious reports whose unseen gain a verdict states."""
ITEMS = (10, 20)
"""Numbers of items whose unseen gain a verdict states, or half of the round's."""

_WORDS = {1: "one item", 10: "ten items"}
_BLIND = 0.9  # of the gain without any test
_DEGREES = (2, 3)  # of the moments by which a set is found: pairs and triples
_LEAST = 1e-9  # of a weight or a limit, for rounding
_LOG_P = math.log(6.2e-4 / 9)  # ln p of one of three parts of one of three kinds, where P = .9


@dataclass(frozen=True)
class UnseenGain:
    """The largest `gain` of some `items` together by a `share` of reports that no test sees.

    `untested` is the gain without any test. Gains are frequencies, at most 1.
    """

    items: int
    share: float
    gain: float
    untested: float

    @property
    def is_blind(self) -> bool:
        """Whether tests hardly limit the gain."""
        return self.gain >= _BLIND * self.untested

    def sentence(self, tests: str = "these tests") -> str:
        """Return the sentence on the gain, with a name for the tests."""
        items, together = _WORDS.get(self.items, f"{self.items} items"), " together"
        return (
            f"An attack by {percent(self.share)} that {tests} cannot see moves {items} by up to "
            f"{math.ceil(100 * self.gain)} points{together if self.items > 1 else ''}."
        )


def unseen_gains(oracle: FrequencyOracle, n: int, *, reads_reports: bool) -> tuple[UnseenGain, ...]:
    """Return the unseen gains of `ITEMS` by malicious users with `SHARE` of n reports."""
    sizes = dict.fromkeys(max(1, min(t, oracle.domain_size // 2)) for t in ITEMS)
    return tuple(unseen_gain(oracle, n, t, SHARE, reads_reports=reads_reports) for t in sizes)


def unseen_gain(
    oracle: FrequencyOracle, n: int, items: int, beta: float, *, reads_reports: bool = True
) -> UnseenGain:
    """Return the largest gain of up to 24 items by a share beta of n reports that P < .9 allows.

    Nobody holds these items, the reports support as many items as honest ones, and other items are
    popular enough to take the loss. Sets are found by their moments of pairs and triples, at
    `found_at` standard errors. Reports are taken as those of an ideal hash under linear hashing,
    and nothing is found in counts alone, nor in reports that are as good as their counts.
    """
    from ldprecover.crafting import crafter_of  # thirteen modules, which importing plans spares

    untested = min(1.0, worst_change(oracle, beta, items, 0.0).rise)
    if not (beta and reads_reports) or crafter_of(oracle).displacements is None:
        return UnseenGain(items, beta, untested, untested)
    law = unseen_law(oracle, n, items, beta)
    mean = float(law @ np.arange(items + 1))
    gain = beta * (mean - items * oracle.q) / (oracle.p - oracle.q)
    return UnseenGain(items, beta, min(gain, untested), untested)


def unseen_law(oracle: FrequencyOracle, n: int, items: int, beta: float) -> FloatArray:
    """Return the law of how many of the items malicious reports support with the unseen gain.

    The moments are within the standard errors of `found_at`.
    """
    honest = binomial_law(items, oracle.q)
    if oracle.fixed_size is not None:
        honest = oracle.laws.hits_of_others(np.arange(items))
    numbers = np.flatnonzero(honest)
    moments = math.sqrt(n) * beta * _polynomials(numbers, honest[numbers])
    law = np.zeros(items + 1)
    law[numbers] = _with_largest_mean(numbers, moments, found_at(oracle.domain_size, items))
    return law


def found_at(d: int, t: int) -> float:
    """Return the standard errors by which a moment of t of d items makes P .9.

    The price of a search is that of all sets of t items, and of all sizes and signs.
    """
    return math.sqrt(2 * (log_choose(d, t) + math.log(2 * t * (t + 1)) - _LOG_P))


def _polynomials(numbers: Int64Array, law: FloatArray) -> FloatArray:
    """Return the orthonormal polynomials of `_DEGREES` under a law, at its numbers.

    Under a binomial law they are the elementary symmetric moments of the centred items.
    """
    rows = [np.zeros(numbers.size), np.ones(numbers.size)]
    for _ in range(min(_DEGREES[-1], numbers.size - 1)):
        new = numbers * rows[-1]
        new = new - law @ (new * rows[-1]) * rows[-1] - law @ (new * rows[-2]) * rows[-2]
        rows.append(new / math.sqrt(law @ new**2))
    return np.array(rows[1 + _DEGREES[0] :]).reshape(-1, numbers.size)


def _with_largest_mean(numbers: Int64Array, moments: FloatArray, limit: float) -> FloatArray:
    """Return the law on the numbers of the largest mean whose mean moments are within ± limit.

    An exact linear programme: the basic solutions, of a number or a slack for each constraint.
    """
    m = len(moments)
    columns = np.hstack([np.vstack([np.ones(numbers.size), moments]), np.eye(m + 1)[:, 1:]])
    bases = np.array(list(combinations(range(columns.shape[1]), m + 1)))
    ends = np.array([(1.0, *bounds) for bounds in product((-limit, limit), repeat=m)])
    scales = np.abs(columns).max(axis=0)
    inverses = np.linalg.pinv((columns / scales).T[bases])
    laws = np.zeros((len(bases), len(ends), scales.size))
    np.put_along_axis(laws, bases[:, None], ends @ inverses, axis=2)
    laws = np.maximum(laws / scales, 0.0).reshape(-1, scales.size)[:, : numbers.size]
    laws /= np.maximum(laws.sum(axis=1, keepdims=True), _LEAST)
    laws = laws[(np.abs(laws @ moments.T) <= limit * (1 + _LEAST)).all(axis=1)]
    law: FloatArray = laws[(laws @ numbers).argmax()]
    return law
