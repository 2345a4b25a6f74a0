"""Canaries in un-mixing: they show the shift, also if they are poisoned."""

import numpy as np
import pytest

from ldprecover import GRR, OUE, FrequencyOracle, RecoveryRequest, Tally, recover
from ldprecover.recovery import Recovery

D, N, CANARIES = 60, 20_000, tuple(range(50, 60))
SHARES = np.append(np.full(50, 1 / 50), np.zeros(10))
"""Nobody else has frequency 0, so that nothing but the canaries tells the shift from a flat law."""


def recovered(
    oracle: FrequencyOracle, attacked: np.ndarray, seed: int, canaries: tuple[int, ...]
) -> Recovery:
    """Return the recovery of N users and N/5 malicious ones, who report the attacked items."""
    rng = np.random.default_rng(seed)
    tally = oracle.simulation.honest_tally(rng.multinomial(N, SHARES), rng)
    tally += Tally.of(oracle, oracle.encode(np.resize(attacked, N // 5), rng))
    estimates = oracle.estimate(tally.counts(oracle), tally.n)
    return recover(oracle, estimates, RecoveryRequest("unmix", canaries=canaries), n=tally.n)


def lower(result: Recovery) -> np.ndarray:
    """Return the lower ends of the intervals of the canaries."""
    assert result.conclusions is not None
    assert result.conclusions.lower is not None
    return result.conclusions.lower[list(CANARIES)]


def error(result: Recovery) -> float:
    return float(((result.recovered - SHARES) ** 2).sum())


def test_canaries_have_no_frequency_and_improve_the_others() -> None:
    """An attack on 30 of the 50 items that users hold looks like a law with many rare items."""
    oracle, attacked = GRR(2.0, D), np.arange(30)
    with_them = [recovered(oracle, attacked, seed, CANARIES) for seed in range(3)]
    without = [recovered(oracle, attacked, seed, ()) for seed in range(3)]
    assert all(result.recovered[list(CANARIES)].max() < 1e-6 for result in with_them)
    assert all((lower(result) == 0).all() for result in with_them)
    assert all(result.recovered.sum() == pytest.approx(1) for result in with_them)
    assert np.mean([error(result) for result in with_them]) < np.mean(
        [error(result) for result in without]
    )


def test_poisoned_canaries_are_taken_for_poisoned() -> None:
    """The attack is on canaries and on others alike: they have no frequency, and are suspects."""
    result = recovered(GRR(2.0, D), np.array([3, 7, 52, 55]), 1, CANARIES)
    assert result.recovered[list(CANARIES)].max() < 1e-6
    assert result.conclusions is not None
    assert {item for item, _ in result.conclusions.suspects} >= {52, 55}
    assert (result.recovered >= 0).all()


@pytest.mark.parametrize(("oracle", "n"), [(GRR(1.0, 60), 20_000), (OUE(1.0, 60), 3_000)])
def test_the_others_share_all_frequency_where_canaries_are_many(
    oracle: FrequencyOracle, n: int
) -> None:
    """Half of the items are canaries, and nobody attacks: the others have twice the mean."""
    shares = np.append(np.full(30, 1 / 30), np.zeros(30))
    errors = np.zeros(2)
    for seed in range(2):
        rng = np.random.default_rng(seed)
        tally = oracle.simulation.honest_tally(rng.multinomial(n, shares), rng)
        estimates = oracle.estimate(tally.counts(oracle), tally.n)
        for i, canaries in enumerate(((), range(30, 60))):
            result = recover(oracle, estimates, RecoveryRequest("unmix", canaries=canaries), n=n)
            errors[i] += float(((result.recovered - shares)[:30] ** 2).sum())
    assert errors[1] < errors[0]
