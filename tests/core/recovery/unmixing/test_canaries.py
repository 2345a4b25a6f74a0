"""Canaries in un-mixing: they show the shift, also if they are poisoned."""

import numpy as np
import pytest
from tests.core.recovery.poisoned_round import play

from ldprecover import GRR, OUE, FrequencyOracle
from ldprecover_attacker import MGA

EVEN = np.append(np.ones(50), np.zeros(10))
"""Nobody else has frequency 0, so that nothing but the canaries tells the shift from a flat law."""
HALF = np.append(np.ones(30), np.zeros(30))


@pytest.mark.parametrize(
    ("oracle", "weights", "n", "targets"),
    [
        (GRR(2.0, 60), EVEN, 20_000, range(30)),
        (GRR(2.0, 60), EVEN, 20_000, (3, 7, 52, 55)),
        (GRR(1.0, 60), HALF, 20_000, ()),
        (OUE(1.0, 60), HALF, 3_000, ()),
    ],
    ids=["many attacked", "poisoned canaries", "many canaries, grr", "many canaries, oue"],
)
def test_canaries_have_no_frequency_and_improve_the_others(
    oracle: FrequencyOracle, weights: np.ndarray, n: int, targets: tuple[int, ...]
) -> None:
    """An attack on most items that users hold looks like a law with many rare items. Poisoned
    canaries are suspects, and the result is better than projection.
    """
    canaries = np.flatnonzero(weights == 0).tolist()
    poisoned = {*targets} & {*canaries}
    attacks = [MGA([target]) for target in targets]
    gains = np.zeros(2)
    for seed in range(2):
        round = play(oracle, weights, n, *attacks, m=n // 5, seed=seed, tallied=True)
        result, conclusions, gain = round.unmixed(canaries=canaries)
        assert result.recovered[canaries].max() < 1e-6
        assert result.recovered.sum() == pytest.approx(1)
        assert conclusions.lower[canaries].max() == 0
        assert {item for item, _ in conclusions.suspects} & {*canaries} == poisoned
        gains += np.log([gain, round.unmixed()[2]])
    assert gains[0] > (0 if poisoned else gains[1])
