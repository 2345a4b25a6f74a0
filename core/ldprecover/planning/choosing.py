"""The choice of a round's protocol, by error, gain of attacks, and what reports cost."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from ldprecover._checks import check_whole
from ldprecover.errors import ParameterError
from ldprecover.estimation.theory import attacker_success_rate, worst_change
from ldprecover.protocols import PROTOCOLS, FrequencyOracle, frequency_oracle

_TARGETS = 10
# Weights of the logarithms of gain, report size, counting and storage; that of the variance is 1.
_GAIN, _SIZE, _COUNTING, _STORAGE = 0.25, 0.05, 0.05, 0.05
_FRAME = 8  # bytes; shorter reports save nothing compared with the request around them
_FREE_TESTS = 1e10  # hash tests, which take seconds
_FREE_BYTES = 1e6  # stored bytes, which a recovery reads in less than a second
_NEAR = 1.1  # of the least variance, within which naming attacked items decides
_INTEGER = 8  # bytes of one integer of a tally


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A protocol for a round, and its costs. Lower is better for each.

    `standard_error` is that of one estimate at a frequency of 1/d. `gain` is the largest total that
    malicious users can add to the estimates of `targets` = min(10, d/2) items, in units of their
    share beta: sum_T (pi(t) - q)/(p - q), for the items that suit them best. `report_size` is in
    bytes; `hash_tests` is the number of items hashed to count all reports. `stored_bytes` is what
    the round stores for methods that read reports: the tally and, unless that is the histogram of
    the reports, every report.

    `score` is log(variance) + log(gain)/4 + (log(report_size) + log(1 + hash_tests/10^10) +
    log(stored_bytes))/20, each relative to the least of all candidates; reports count as at least
    8 bytes, and what is stored as at least 10^6.
    """

    oracle: FrequencyOracle
    standard_error: float
    gain: float
    targets: int
    report_size: int
    hash_tests: float
    stored_bytes: int
    score: float = 0.0

    @property
    def names_items(self) -> bool:
        """Whether stored reports can name attacked items: they tell more than the tally does."""
        return not self.oracle.traits.histogram and self.oracle.fixed_size != 1

    @property
    def attacker_success_rate(self) -> float:
        """The probability that whoever sees one report guesses its user's item; not scored."""
        return attacker_success_rate(self.oracle)


@dataclass(frozen=True)
class Choice:
    """The candidates, best first; those that are not proposed (`is_proposed`) come last."""

    candidates: tuple[Candidate, ...]

    @property
    def best(self) -> Candidate:
        """The proposed candidate with the lowest score."""
        return self.candidates[0]

    @property
    def best_if_stored(self) -> Candidate:
        """The best where reports are stored anyway: rather one that can name attacked items.

        Its variance is at most 1.1 times the least one.
        """
        proposed = [each for each in self.candidates if each.oracle.is_proposed] or [self.best]
        limit = math.sqrt(_NEAR) * min(each.standard_error for each in proposed)
        naming = (each for each in proposed if each.names_items and each.standard_error <= limit)
        return next(naming, self.best)


def choose(d: int, epsilon: float, n: int, protocols: Iterable[str] | None = None) -> Choice:
    """Return the ranking of protocols for a round of d items and n users.

    Each protocol has its own parameter at its default. `protocols` limits the candidates; of equal
    ones the first comes first.

        choice = choose(d=100, epsilon=1.0, n=50_000)
        print(choice.best.oracle.protocol)

    Raises ParameterError for a parameter outside its range, or no protocol.
    """
    n = check_whole("n, the number of users,", n, 1)
    names = list(PROTOCOLS) if protocols is None else list(protocols)
    if not names:
        raise ParameterError("protocols must name at least one")
    targets = max(1, min(_TARGETS, d // 2))
    candidates = [candidate(frequency_oracle(name, epsilon, d), n, targets) for name in names]
    gain = min(each.gain for each in candidates)
    error = min(each.standard_error for each in candidates)
    size = min(max(each.report_size, _FRAME) for each in candidates)
    tests = min(each.hash_tests for each in candidates)
    stored = min(max(each.stored_bytes, _FREE_BYTES) for each in candidates)

    def score(each: Candidate) -> float:
        return (
            2 * math.log(each.standard_error / error)
            + _GAIN * math.log(each.gain / gain)
            + _SIZE * math.log(max(each.report_size, _FRAME) / size)
            + _COUNTING * math.log((1 + each.hash_tests / _FREE_TESTS) / (1 + tests / _FREE_TESTS))
            + _STORAGE * math.log(max(each.stored_bytes, _FREE_BYTES) / stored)
        )

    scored = [replace(each, score=score(each)) for each in candidates]
    order = sorted(scored, key=lambda each: (not each.oracle.is_proposed, round(each.score, 9)))
    return Choice(tuple(order))


def proposed_retention(oracle: FrequencyOracle) -> str:
    """Return a round's `retention` under which the methods that read reports remain possible."""
    return "none" if oracle.traits.histogram else "forever"


def candidate(oracle: FrequencyOracle, n: int, targets: int) -> Candidate:
    """Return a protocol and its costs for n users, without a score."""
    return Candidate(
        oracle=oracle,
        standard_error=math.sqrt(float(oracle.variance(1 / oracle.domain_size, n))),
        gain=worst_change(oracle, 1.0, targets, 0.0).rise,
        targets=targets,
        report_size=oracle.wire.size,
        hash_tests=float(oracle.hash_tests) * n,
        stored_bytes=_INTEGER * oracle.summary_size
        + (0 if oracle.traits.histogram else n * oracle.wire.size),
    )
