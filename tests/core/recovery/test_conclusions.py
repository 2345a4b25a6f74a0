"""The words for the probability of an attack."""

import pytest

from ldprecover.recovery.conclusions import attack_word


@pytest.mark.parametrize(
    ("probability", "has_evidence", "word"),
    [
        (None, False, "none_seen"),
        (0.0999, False, "none_seen"),
        (None, True, "possible"),
        (0.0, True, "possible"),
        (0.1, False, "possible"),
        (0.8999, True, "possible"),
        (0.9, False, "near_certain"),
        (1.0, True, "near_certain"),
    ],
)
def test_probability_and_evidence_choose_the_word(
    probability: float | None, has_evidence: bool, word: str
) -> None:
    assert attack_word(probability, has_evidence=has_evidence) == word
