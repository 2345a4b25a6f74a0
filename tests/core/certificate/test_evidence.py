"""The error of a certificate from reports: every part of it by exact tails, and their sum.

Chernoff's, Hoeffding's and McDiarmid's bounds are compared with exact laws at an error of 1e-12:
there a bound whose exponent is too small by a tenth would be exceeded more often than it says.
"""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ldprecover.certificate.evidence import HonestPart, RoundEvidence, Scored, scores_log_tail
from ldprecover.certificate.region import Region, frequency_limits
from ldprecover.protocols import OUE

ERROR = 1e-12
EVERYTHING = Region(np.zeros(2), np.ones(2))


def part(n: int, scored: int, share: float, d: int = 2, error: float = ERROR) -> HonestPart:
    honest = HonestPart.of(n, scored, share, d, error)
    assert honest is not None
    return honest


def assert_tail(log_probability: float, log_tail: float, slack: float = 1.2) -> None:
    """Assert that a probability is at most exp(-log_tail), and at least exp(-slack log_tail)."""
    assert log_tail * (1 - 1e-9) <= -log_probability <= slack * log_tail


def test_scored_malicious_reports_exceed_their_limit_with_a_twentieth() -> None:
    """Half of the reports are scored: exact hypergeometric tails."""
    n, malicious = 10**6, 2_000
    sampled = n // 2 - part(n, n // 2, malicious / n).n
    tail = stats.hypergeom(n, malicious, n // 2).logsf(math.ceil(sampled) - 1)
    assert_tail(float(tail), math.log(20 / ERROR))
    assert n // 2 - part(n, n // 2, malicious / n, error=20.0).n == malicious / 2
    few = part(n, 999_000, 10 / n)
    assert few.n == 999_000 - 10, "no more than there are"


def test_distance_is_exceeded_with_a_twentieth() -> None:
    """All but 2,000 of 10^6 users are sampled, half of whom hold one item: exact hypergeometric."""
    n, others = 10**6, 2_000
    distance = part(n, n - others, 0.0).distance
    off = math.ceil((n - others) * (0.5 + distance))
    tail = stats.hypergeom(n, n // 2, n - others).logsf(off - 1)
    assert_tail(float(tail) + math.log(2), math.log(20 / ERROR), 1.4)


@pytest.mark.parametrize(("d", "n", "sampled"), [(2, 8, 3), (2, 8, 7), (3, 9, 4), (4, 8, 5)])
def test_mean_distance_is_that_of_cauchy_and_schwarz(d: int, n: int, sampled: int) -> None:
    """All draws of equal frequencies, enumerated; an error of 20 leaves the bound of the mean."""
    users = np.arange(n) % d
    draws = [users[list(draw)] for draw in itertools.combinations(range(n), sampled)]
    shares = np.array([np.bincount(draw, minlength=d) for draw in draws]) / sampled
    off = shares - np.bincount(users, minlength=d) / n
    bound = part(n, sampled, 0.0, d, 20.0).distance
    assert bound == pytest.approx(math.sqrt(d * (off**2).sum(axis=1).mean()) / 2)
    assert np.abs(off).sum(axis=1).mean() / 2 <= bound


def test_less_than_two_honest_reports_say_nothing() -> None:
    assert HonestPart.of(10, 2, 0.0, 2, 0.1) is not None
    assert HonestPart.of(10, 2, 0.1, 2, 0.1) is None
    assert part(10, 2, 0.0).distance == 1.0
    assert part(100, 100, 0.29).n == 71, "0.29 of 100 reports are 29, whatever doubles say"
    assert part(100, 100, 0.2899).n == 72


@pytest.mark.parametrize(("score", "log_tail"), [(0.1, 3.0), (1.0, 30.0), (3.0, 30.0)])
def test_sum_of_scores_falls_short_with_its_tail(score: float, log_tail: float) -> None:
    """Honest reports have the score with probability 0.3 or 0.6, by item: exact binomial tails."""
    n, laws, frequencies = 3_000, np.array([0.3, 0.6]), np.array([0.5, 0.5])
    losses = laws * -math.expm1(-score)
    number, share = np.arange(n + 1), float(frequencies @ laws)
    excluded = np.array(
        [not allows(HonestPart(n, 0.0), losses, score * k, log_tail, frequencies) for k in number]
    )
    limit = int(number[excluded].max())
    assert excluded[: limit + 1].all()
    log_probability = float(stats.binom.logcdf(limit, n, share))
    assert -log_probability >= log_tail
    # Chernoff's bound with this score: the limit is where it says.
    bound = n * -math.log1p(share * math.expm1(-score)) - log_tail
    assert score * limit <= bound + 1e-6 <= score * (limit + 1)


def allows(
    honest: HonestPart, losses: np.ndarray, sum: float, log_tail: float, frequencies: np.ndarray
) -> bool:
    region = honest.region(EVERYTHING, losses[None], np.array([sum]), log_tail)
    return bool((region.rows @ frequencies <= region.ends).all())


def test_distance_moves_a_loss_by_its_range() -> None:
    """All users may hold the costlier item more often than those that are scored do."""
    losses, scored = np.array([0.1, 0.6]), np.array([0.5, 0.5])
    sum, honest = -100 * math.log1p(-losses @ scored), HonestPart(100, 0.2)
    assert allows(honest, losses, sum, 0.0, scored + np.array([-0.2, 0.2]))
    assert not allows(honest, losses, sum, 0.0, scored + np.array([-0.2001, 0.2001]))
    equal = np.array([0.6, 0.6])
    sum = -100 * math.log1p(-0.6)
    assert allows(honest, equal, sum, 0.0, scored)
    assert not allows(honest, equal, sum - 1e-9, 0.0, scored)


def test_rows_are_scaled_to_one() -> None:
    losses = np.array([[1e-9, 3e-9, 2e-9], [0.5, 0.6, 0.7]])
    region = HonestPart(100, 0.2).region(EVERYTHING, losses, np.ones(2), 1.0)
    np.testing.assert_allclose(region.rows, [[0, 1, 0.5], [0, 0.5, 1]])


def test_errors_of_all_events_are_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """2d limits of counts, both of the split and one of each score, by their tails in use."""
    d, n, error = 6, 1_000, 0.01
    region = HonestPart.region
    tails: list[float] = []

    def limits(*arguments: Any) -> Any:
        tails.extend(arguments[-2:])
        return frequency_limits(*arguments)

    def allowed(*arguments: Any) -> Any:
        tails.append(arguments[-1])
        return region(*arguments)

    monkeypatch.setattr("ldprecover.certificate.evidence.frequency_limits", limits)
    monkeypatch.setattr(HonestPart, "region", allowed)
    oracle = OUE(1.0, d)
    counts = np.full(d, n * (oracle.q + (oracle.p - oracle.q) / d))
    scored = Scored(750, np.tile(np.linspace(0.1, 0.2, d), (5, 1)), np.full(5, 300.0))
    evidence = RoundEvidence(oracle, counts, n, error, scored)
    honest: Any = HonestPart.of(n, 750, 0.1, d, error)
    assert evidence.region(0.1) is not None
    honest_n, of_counts, of_scores = tails
    assert honest_n == 900
    assert of_scores == scores_log_tail(5, error)
    of_malicious = 2 / 100 * (750 - 75 - honest.n) ** 2
    mean = part(n, 750, 0.1, d, 20.0)
    assert mean.n == 675
    mean_distance = math.sqrt((d - 1) * 250 / (honest.n * (honest.n + 249))) / 2
    of_distance = 2 / 250 * ((honest.distance - mean_distance) * honest.n) ** 2
    numbers = {of_counts: 2 * d, of_scores: 5, of_malicious: 1, of_distance: 1}
    assert evidence.events == sum(numbers.values())
    assert sum(k * math.exp(-tail) for tail, k in numbers.items()) == pytest.approx(error)
    assert math.exp(-of_malicious) == pytest.approx(error / 20)
    tails.clear()
    counted = RoundEvidence(oracle, counts, n, error)
    assert counted.region(0.1) is not None
    assert counted.events == 2 * d
    assert 2 * d * math.exp(-tails[1]) == pytest.approx(error)
    assert 2 * d * math.exp(-of_counts) == pytest.approx(error / 5)
