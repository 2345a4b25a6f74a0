"""The words for the probability of an attack."""

import pytest

from ldprecover.recovery.conclusions import attack_word


@pytest.mark.parametrize(
    ("probability", "proven", "has_alarm", "word"),
    [
        (None, 0.0, False, "none_seen"),
        (0.0999, 0.0, False, "none_seen"),
        (None, 0.0, True, "possible"),
        (0.0, 1e-6, False, "possible"),
        (0.1, 0.0, False, "possible"),
        (0.8999, 0.0999, True, "possible"),
        (0.9, 0.0, False, "near_certain"),
        (None, 0.1, False, "near_certain"),
        (1.0, 0.5, True, "near_certain"),
    ],
)
def test_probability_proof_and_alarms_choose_the_word(
    probability: float | None, proven: float, has_alarm: bool, word: str
) -> None:
    assert attack_word(probability, proven=proven, has_alarm=has_alarm) == word
