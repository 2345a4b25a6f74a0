"""Unbiased frequencies of a tally, with what is known of their error."""

from dataclasses import dataclass
from statistics import NormalDist

from ldprecover.errors import ParameterError
from ldprecover.protocols.base import FrequencyOracle
from ldprecover.tally import Tally
from ldprecover.types import FloatArray

__all__ = ["Estimates"]


@dataclass(frozen=True, eq=False)
class Estimates:
    """Unbiased, unclipped frequencies f~ of n reports, and their standard errors (Lemma 2)."""

    frequencies: FloatArray
    standard_errors: FloatArray
    n: int

    @classmethod
    def of(cls, oracle: FrequencyOracle, tally: Tally) -> "Estimates":
        """Estimate from a tally. Raises ParameterError when it holds no report, or is over another domain."""
        frequencies = oracle.estimate(tally.counts(oracle), tally.n)
        return cls(frequencies, oracle.standard_errors(frequencies, tally.n), tally.n)

    @property
    def sum(self) -> float:
        """Sum of the frequencies: 1 in expectation when every report is honest."""
        return float(self.frequencies.sum())

    def interval(self, confidence: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return (low, high), the normal interval of each item at this two-sided confidence."""
        if not 0 < confidence < 1:
            raise ParameterError("confidence must be between 0 and 1")
        half = NormalDist().inv_cdf((1 + confidence) / 2) * self.standard_errors
        return self.frequencies - half, self.frequencies + half
