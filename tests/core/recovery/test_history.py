"""Earlier rounds in a request."""

from typing import Any

import numpy as np
import pytest
from tests.core.recovery.poisoned_round import play

from ldprecover import GRR, OUE, ParameterError, RecoveryRequest, Tally, recover
from ldprecover_attacker import MGA

BEFORE = (OUE(2, 3), Tally(np.array([5, 4, 3]), 9))


@pytest.mark.parametrize(
    ("history", "message"),
    [
        (3, "history must be pairs of a frequency oracle and a tally"),
        ([BEFORE[1]], "history must be pairs of a frequency oracle and a tally"),
        ([(OUE(2, 4), Tally(np.zeros(4, np.int64), 9))], "over the same 3 items, not 4"),
        ([(OUE(2, 3), Tally(np.zeros(4, np.int64), 9))], "the tally is of 4 items, not of 3"),
        ([BEFORE, (OUE(2, 3), Tally.empty(3))], "every round of the history must have a report"),
    ],
)
def test_earlier_rounds_are_tallies_over_the_same_items(history: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        recover(GRR(1, 3), [0.5, 0.3, 0.2], RecoveryRequest("norm-sub", history=history))


def test_notes_doubt_only_a_past_with_evidence_of_an_attack() -> None:
    """Of clean rounds fewer than 1 in 100 are doubted."""
    law, attack = 0.93 ** np.arange(60), MGA((30, 40, 50))
    now, clean, attacked = (
        play(GRR(2.0, 60), law, 40_000, attack, m=m, seed=seed, tallied=True)
        for seed, m in enumerate((0, 0, 3000))
    )
    for past in (clean, attacked):
        notes = now.unmixed(history=[(past.oracle, past.tally)])[0].notes
        assert any("evidence of an attack" in note for note in notes) == (past is attacked)
