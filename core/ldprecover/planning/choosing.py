"""Which protocol a round should have: by its error, an attack's gain, its reports' size, and
counting them.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from ldprecover.errors import ParameterError
from ldprecover.planning.gains import most_gain
from ldprecover.protocols import PROTOCOLS, FrequencyOracle, frequency_oracle

_TARGETS = 10
_GAIN, _SIZE, _COUNTING = (
    0.25,
    0.05,
    0.05,
)  # what a factor in each is worth, where one in the variance is worth 1
_FRAME = 8  # bytes: shorter reports save nothing beside what carries them
_FREE = 1e10  # hash tests that are counted in seconds


@dataclass(frozen=True)
class Candidate:
    """A protocol for a round, and what it would cost. Lower is better in all of it.

    `standard_error` is that of one estimate, at a frequency of 1/d. `gain` is what malicious users
    who craft for the `targets` = min(10, d/2) items that suit them best add to these estimates
    together, in units of their share beta: sum_T (pi(t) - q)/(p - q). `report_size` is in bytes,
    `hash_tests` are the items hashed to count all reports. `score` is above 0 by
    log(variance) + log(gain)/4 + log(report_size)/20 + log(1 + hash_tests/10^10)/20, each over the
    least of all candidates; reports count as 8 bytes at least.
    """

    oracle: FrequencyOracle
    standard_error: float
    gain: float
    targets: int
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
        """What each candidate costs, a line for each, the best first."""
        return "\n".join(f"{each.oracle.protocol}: {_costs(each)}" for each in self.candidates)


def choose(d: int, epsilon: float, n: int, protocols: Iterable[str] | None = None) -> Choice:
    """Return which protocol to open a round of d items with, for n users, and why; of all there
    are, unless given.

    Of two that are as good the one that was there first.

    Each has its own parameter at its default. Raises ParameterError for a parameter outside its
    range or no protocol.
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise ParameterError("n, the number of users, must be an integer of at least 1")
    names = list(PROTOCOLS) if protocols is None else list(protocols)
    if not names:
        raise ParameterError("protocols must name at least one")
    found = [_candidate(frequency_oracle(name, epsilon, d), n) for name in names]
    gain = min(each.gain for each in found)
    error = min(each.standard_error for each in found)
    size = min(max(each.report_size, _FRAME) for each in found)
    tests = min(each.hash_tests for each in found)

    def score(each: Candidate) -> float:
        return (
            2 * math.log(each.standard_error / error)
            + _GAIN * math.log(each.gain / gain)
            + _SIZE * math.log(max(each.report_size, _FRAME) / size)
            + _COUNTING * math.log((1 + each.hash_tests / _FREE) / (1 + tests / _FREE))
        )

    scored = [replace(each, score=score(each)) for each in found]
    return Choice(tuple(sorted(scored, key=lambda each: round(each.score, 9))))


def _candidate(oracle: FrequencyOracle, n: int) -> Candidate:
    d = oracle.domain_size
    targets = max(1, min(_TARGETS, d // 2))
    error = math.sqrt(float(oracle.variance(1 / d, n)))
    return Candidate(
        oracle,
        error,
        most_gain(oracle, targets),
        targets,
        oracle.report_size,
        float(oracle.hash_tests) * n,
    )


def _costs(each: Candidate) -> str:
    """Return what a candidate costs, in words."""
    words = [f"one standard error is {100 * each.standard_error:.3g} percentage points"]
    words.append(
        f"1 % crafted reports raise {each.targets} items together by {each.gain:.3g} points"
    )
    words.append(f"{each.report_size} bytes a report")
    if each.hash_tests:
        words.append(f"{each.hash_tests:.2g} hashes to count")
    return ", ".join(words)
