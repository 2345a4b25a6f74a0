"""The note on earlier rounds that are not as clean as stated."""

import numpy as np
import pytest

from ldprecover import GRR, RecoveryRequest, Tally, recover


@pytest.mark.parametrize(("malicious", "is_doubted"), [(0, False), (3000, True)])
def test_notes_doubt_only_a_past_with_evidence_of_an_attack(
    malicious: int, is_doubted: bool
) -> None:
    """Of clean rounds fewer than 1 in 100 are doubted."""
    oracle, rng, n = GRR(2.0, 60), np.random.default_rng(1), 40_000
    law = 0.93 ** np.arange(60)
    past, now = rng.multinomial(n, law / law.sum(), 2)
    fakes = Tally(np.bincount([30, 40, 50], minlength=60) * malicious // 3, malicious)
    request = RecoveryRequest(
        "unmix", history=[(oracle, oracle.simulation.honest_tally(past, rng) + fakes)]
    )
    tally = oracle.simulation.honest_tally(now, rng)
    notes = recover(oracle, oracle.estimate(tally.counts(oracle), n), request, n=n).notes
    assert any("evidence of an attack itself" in note for note in notes) == is_doubted
