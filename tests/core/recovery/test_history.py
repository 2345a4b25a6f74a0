"""Earlier rounds in a request."""

from typing import Any

import numpy as np
import pytest

from ldprecover import GRR, OUE, ParameterError, RecoveryRequest, Tally, recover

BEFORE = (OUE(2, 3), Tally(np.array([5, 4, 3]), 9))


@pytest.mark.parametrize(
    ("history", "message"),
    [
        (3, "history must be pairs of a frequency oracle and a tally"),
        ([BEFORE[1]], "history must be pairs of a frequency oracle and a tally"),
        ([(BEFORE[1], BEFORE[0])], "history must be pairs of a frequency oracle and a tally"),
        ([(OUE(2, 4), Tally(np.zeros(4, np.int64), 9))], "over the same 3 items, not 4"),
        ([(OUE(2, 3), Tally(np.zeros(4, np.int64), 9))], "the tally is of 4 items, not of 3"),
        ([BEFORE, (OUE(2, 3), Tally.empty(3))], "every round of the history must have a report"),
    ],
)
def test_earlier_rounds_are_tallies_over_the_same_items(history: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        recover(GRR(1, 3), [0.5, 0.3, 0.2], RecoveryRequest("norm-sub", history=history))


def test_note_if_the_method_does_not_use_earlier_rounds() -> None:
    result = recover(GRR(1, 3), [0.5, 0.3, 0.2], RecoveryRequest("norm-sub", history=[BEFORE]))
    assert "norm-sub does not use history." in result.notes
