"""Notes on earlier rounds that are not as clean as stated."""

import numpy as np
import pytest

from ldprecover import GRR, OUE, FrequencyOracle, RecoveryRequest, Tally, recover
from ldprecover.protocols import crafter_of

D, N = 60, 40_000
SHARES = 0.93 ** np.arange(D) / (0.93 ** np.arange(D)).sum()


def round_of(
    oracle: FrequencyOracle, seed: int, malicious: int = 0, shares: np.ndarray = SHARES
) -> Tally:
    """A round of N users, and malicious ones for items 30, 40 and 50 by crafted reports."""
    rng = np.random.default_rng(seed)
    tally = oracle.simulation.honest_tally(rng.multinomial(N, shares), rng)
    if malicious:
        tally += Tally.of(
            oracle, crafter_of(oracle).craft(np.tile([30, 40, 50], (malicious, 1)), rng)
        )
    return tally


def notes(oracle: FrequencyOracle, *history: Tally) -> str:
    now = round_of(oracle, 9)
    estimates = oracle.estimate(now.counts(oracle), now.n)
    result = recover(
        oracle,
        estimates,
        RecoveryRequest("unmix", history=[(oracle, each) for each in history]),
        n=now.n,
    )
    return " ".join(result.notes)


@pytest.mark.parametrize(
    "oracle",
    [GRR(2.0, D), pytest.param(OUE(1.0, D), marks=pytest.mark.statistical)],
    ids=lambda o: o.protocol,
)
def test_notes_doubt_only_a_past_that_is_not_clean(oracle: FrequencyOracle) -> None:
    """The disagreement of two clean rounds is noise's once in a million; the sampling of users adds
    next to nothing.
    """
    clean, moved = round_of(oracle, 1), round_of(oracle, 2, shares=np.roll(SHARES, 3))
    assert "themselves look attacked" in notes(oracle, round_of(oracle, 1, malicious=N // 15))
    assert "differ from each other" in notes(oracle, clean, moved)
    text = notes(oracle, clean, round_of(oracle, 2))
    assert "look attacked" not in text
    assert "differ from each other" not in text
