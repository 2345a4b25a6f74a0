"""Limits of statistical tests, from the false alarms and the errors that they state."""

from scipy import stats


def most_failures(rounds: int, rate: float, *, false_alarm: float, missed: float) -> int:
    """Return how often an event of at most this rate may occur in this many rounds.

    Without an error a share `false_alarm` of all seeds exceeds it. An event with the rate `missed`
    stays within it in at most one of 100, or the call fails.
    """
    limit = int(stats.binom.isf(false_alarm, rounds, rate))
    assert stats.binom.cdf(limit, rounds, missed) <= 0.01, "it misses more than it states"
    return limit
