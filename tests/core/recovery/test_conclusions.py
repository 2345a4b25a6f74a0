"""The conclusions about an attack from a method, a proof and alarms."""

import pytest

from ldprecover.recovery.conclusions import Attack, attack_word


@pytest.mark.parametrize(
    ("concluded", "proven", "has_alarm", "word"),
    [
        (None, 0.0, False, "cannot_be_seen"),
        ("cannot_be_seen", 0.0, False, "cannot_be_seen"),
        ("none_seen", 0.0, False, "none_seen"),
        (None, 0.0, True, "possible"),
        ("none_seen", 1e-6, False, "possible"),
        ("cannot_be_seen", 0.0, True, "possible"),
        ("possible", 0.0999, True, "possible"),
        ("near_certain", 0.0, False, "near_certain"),
        (None, 0.1, False, "near_certain"),
        ("cannot_be_seen", 0.5, True, "near_certain"),
    ],
)
def test_conclusion_proof_and_alarms_choose_the_word(
    concluded: Attack | None, proven: float, has_alarm: bool, word: str
) -> None:
    assert attack_word(concluded, proven=proven, has_alarm=has_alarm) == word
