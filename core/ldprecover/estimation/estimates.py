"""Unbiased frequencies of a tally, and their standard errors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np

from ldprecover._checks import check_real, check_whole, finite_vector
from ldprecover.errors import ParameterError
from ldprecover.items import highest
from ldprecover.protocols.laws import SUMS, required
from ldprecover.protocols.oracle import FrequencyOracle
from ldprecover.reports.tally import Tally
from ldprecover.sentences import NOISE
from ldprecover.types import FloatArray

_CHANCE = 1e-3  # probability that the noise of a round lifts one item as high as a popular one


@dataclass(frozen=True, eq=False)
class Estimates:
    """Unbiased, unclipped frequencies f~ of n reports, and their standard errors (Lemma 2).

    Both are shares of the users, from d items each; frequencies can be negative.

        estimates = Estimates.of(oracle, Tally.of(oracle, reports))
        low, high = estimates.interval(0.95)

    `sum_standard_error` is that of their sum if every report is honest, the largest one where it
    depends on the items of users; None where the protocol has no such law.

    Raises ParameterError for vectors that are not finite numbers of the same items.
    """

    frequencies: FloatArray
    standard_errors: FloatArray
    n: int
    sum_standard_error: float | None

    def __post_init__(self) -> None:
        for name in ("frequencies", "standard_errors"):
            object.__setattr__(self, name, finite_vector(getattr(self, name), name))
        errors = self.standard_errors
        if errors.shape != self.frequencies.shape or (errors < 0).any():
            raise ParameterError("standard_errors must be at least 0, one for each frequency")
        object.__setattr__(self, "n", check_whole("n, the number of reports,", self.n, 1))

    def __repr__(self) -> str:
        top = highest(self.frequencies)
        return f"Estimates({self.n:,} reports, {len(self.frequencies):,} items: {top})"

    @classmethod
    def of(cls, oracle: FrequencyOracle, tally: Tally, *, questions: int = 1) -> Estimates:
        """Return the estimates of a tally.

        If each user drew one of several `questions`, the errors are about all people, of whom the
        users are a sample: it adds (1 - 1/questions) f(1 - f)/n to the variance, at the estimate
        clipped to [0, 1].

        Raises ParameterError if it is of no report, or over another domain.
        """
        frequencies = tally.frequencies(oracle)
        moments = oracle.laws.largest_sum_moments(tally.n)
        f = np.clip(frequencies, 0, 1)
        sampling = (1 - 1 / questions) * f * (1 - f) / tally.n
        errors = np.sqrt(oracle.standard_errors(frequencies, tally.n) ** 2 + sampling)
        return cls(frequencies, errors, tally.n, None if moments is None else math.sqrt(moments[0]))

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what the estimates cannot tell, such as that noise hides differences."""
        note = noise_note(self.frequencies, self.standard_errors)
        return () if note is None else (note,)

    @property
    def sum(self) -> float:
        """The sum of the frequencies, 1 in expectation if every report is honest."""
        return float(self.frequencies.sum())

    def interval(
        self,
        confidence: float = 0.95,
        *,
        of: Literal["users", "population"] = "users",  # phrases: quoted
    ) -> tuple[FloatArray, FloatArray]:
        """Return (low, high), the normal interval of each item at this two-sided confidence.

        `of` is "users" for the frequencies among those who reported; the error is then the
        protocol's noise alone. With "population" the users are a random sample of it, and sampling
        adds f(1 - f)/n to the variance, at the estimate clipped to [0, 1]. Raises ParameterError.
        """
        quantile = two_sided_quantile(confidence)
        if of not in ("users", "population"):  # phrases: quoted
            raise ParameterError(f"of must be users or population, not {of!r:.40}")
        errors = self.standard_errors
        if of == "population":
            f = np.clip(self.frequencies, 0, 1)
            errors = np.sqrt(errors**2 + f * (1 - f) / self.n)
        half = quantile * errors
        return self.frequencies - half, self.frequencies + half


def two_sided_quantile(confidence: float) -> float:
    """Return how many standard errors the normal interval at this confidence reaches to each side.

    Raises ParameterError unless the confidence is between 0 and 1.
    """
    if not 0 < check_real("confidence", confidence, 0, 1) < 1:
        raise ParameterError("confidence must be between 0 and 1")
    return -NormalDist().inv_cdf((1 - confidence) / 2)


def noise_note(frequencies: FloatArray, standard_errors: FloatArray) -> str | None:
    """Return the sentence that the noise of the items hides their differences, or None.

    The noise is the median standard error. The spread is the root of the variance of the
    frequencies over the items less the mean squared standard error: what noise does not explain.
    The note is returned if the spread is the smaller, unless an item lies above the mean by more
    than the noise of d items exceeds once in 1,000 rounds: among very many items a few popular
    ones add little to the variance.
    """
    with np.errstate(all="ignore"):  # of numbers that have no variance
        noise = float(np.median(standard_errors))
        excess = np.var(frequencies) - np.mean(standard_errors**2)
        highest = ((frequencies - frequencies.mean()) / standard_errors).max()
    spread = math.sqrt(max(0.0, float(excess)))
    if not spread < noise or highest > NormalDist().inv_cdf(1 - _CHANCE / frequencies.size):
        return None
    return f"{NOISE}: noise {_points(noise)} points, spread {_points(spread)} points."


def _points(share: float) -> str:
    """Return a share in percentage points, with two significant digits."""
    return np.format_float_positional(100 * share, precision=2, fractional=False, trim="-")


def partial_sum_variance(oracle: FrequencyOracle, r: int, share: float, n: int) -> float:
    """Return the variance of the sum of the estimates of r >= 1 items, from n honest reports.

    A `share` of the users holds one of the r items, for example a bin, a range or the first k.
    Raises ParameterError where the variance depends on which items they are, or is not known.
    """
    if r == 1:
        return float(oracle.variance(share, n))
    hits = oracle.laws.hits
    variances = None if hits is None else hits.variances(r)
    own, others = required(variances, oracle.protocol, SUMS)
    return (share * own + (1 - share) * others) / (n * (oracle.p - oracle.q) ** 2)
