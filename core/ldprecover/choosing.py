"""Which protocol a round should have: by its error, an attack's gain, its reports' size, and counting them."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from ldprecover.errors import ParameterError
from ldprecover.protocols import PROTOCOLS, FrequencyOracle, frequency_oracle

__all__ = ["Candidate", "Choice", "choose"]

_TARGETS = 10
_GAIN, _SIZE, _COUNTING = 0.25, 0.05, 0.05  # what a factor in each is worth, where one in the variance is worth 1
_FRAME = 8  # bytes: shorter reports save nothing beside what carries them
_FREE = 1e10  # hash tests that are counted in seconds


@dataclass(frozen=True)
class Candidate:
    """A protocol for a round, and what it would cost. Lower is better in all of it.

    `standard_error` is that of one estimate, at a frequency of 1/d. `gain` is what malicious users who craft for
    min(10, d/2) targets add to these estimates together, in units of their share beta; None where the protocol has no
    law of such reports. `report_size` is in bytes, `hash_tests` are the items hashed to count all reports. `score` is
    above 0 by log(variance) + log(gain)/4 + log(report_size)/20 + log(1 + hash_tests/10^10)/20, each over the least
    of all candidates; reports count as 8 bytes at least.
    """

    oracle: FrequencyOracle
    standard_error: float
    gain: float | None
    report_size: int
    hash_tests: float
    score: float = 0.0


@dataclass(frozen=True)
class Choice:
    """The candidates, the best first."""

    candidates: tuple[Candidate, ...]

    @property
    def best(self) -> Candidate:
        """The candidate of the lowest score."""
        return self.candidates[0]

    @property
    def why(self) -> str:
        """A sentence with what the best one costs, and one with what the others would."""
        said = [f"{each.oracle.protocol} {_compared(each, self.best)}" for each in self.candidates[1:]]
        best, error = self.best, 100 * self.best.standard_error
        gain = (
            ""
            if best.gain is None
            else f", a share of 1 % crafted reports raises the targets by {best.gain:.3g} points"
        )
        first = f"{best.oracle.protocol}: one standard error is {error:.3g} percentage points{gain}"
        return f"{first}. Beside it: {'; '.join(said)}." if said else f"{first}."


def choose(d: int, epsilon: float, n: int, protocols: Iterable[str] | None = None) -> Choice:
    """Return which protocol to open a round of d items with, for n users, and why; of all there are, unless given.

    Of two that are as good the one that was there first.

    Each has its own parameter at its default. Raises ParameterError for a parameter outside its range or no protocol.
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise ParameterError("n, the number of users, must be an integer of at least 1")
    names = list(PROTOCOLS) if protocols is None else list(protocols)
    if not names:
        raise ParameterError("protocols must name at least one")
    found = [_candidate(frequency_oracle(name, epsilon, d), n) for name in names]
    gains = [each.gain for each in found if each.gain is not None]
    least, most = (min(gains), max(gains)) if gains else (1.0, 1.0)
    error = min(each.standard_error for each in found)
    size = min(max(each.report_size, _FRAME) for each in found)
    tests = min(each.hash_tests for each in found)

    def score(each: Candidate) -> float:
        gain = most if each.gain is None else each.gain  # what is not known is taken as the worst
        return (
            2 * math.log(each.standard_error / error)
            + _GAIN * math.log(gain / least)
            + _SIZE * math.log(max(each.report_size, _FRAME) / size)
            + _COUNTING * math.log((1 + each.hash_tests / _FREE) / (1 + tests / _FREE))
        )

    scored = [replace(each, score=score(each)) for each in found]
    return Choice(tuple(sorted(scored, key=lambda each: round(each.score, 9))))


def _candidate(oracle: FrequencyOracle, n: int) -> Candidate:
    d = oracle.domain_size
    error = math.sqrt(float(oracle.variance(1 / d, n)))
    return Candidate(oracle, error, _gain(oracle), oracle.report_size, float(oracle.hash_tests) * n)


def _gain(oracle: FrequencyOracle) -> float | None:
    """Return the sum over the targets of what crafted reports are estimated as."""
    d = oracle.domain_size
    r = max(1, min(_TARGETS, d // 2))
    targets = np.linspace(0, d - 1, r).astype(np.int64)
    included = np.zeros(d)
    included[targets] = 1.0
    try:
        support = oracle.crafted_support(included, r)
    except ParameterError:
        return None
    return float(oracle.frequencies_of(support)[targets].sum())


def _compared(one: Candidate, best: Candidate) -> str:
    """Return what a candidate costs in multiples of the best one's."""
    parts = [f"{one.standard_error / best.standard_error:.3g} times the error"]
    if one.gain is not None and best.gain:
        parts.append(f"{one.gain / best.gain:.3g} times the gain")
    parts.append(f"{one.report_size} bytes a report to {best.report_size}")
    if one.hash_tests:
        parts.append(f"{one.hash_tests:.2g} hashes to count")
    return ", ".join(parts)
