"""The simulated people of a series: how often they answer, leave, and change."""

import numpy as np
import pytest

from ldprecover_client import ArgumentError, Panel


def test_each_person_answers_once_a_period_up_to_the_limit() -> None:
    panel = Panel([3, 1], 1_000, period=5, limit=3, seed=1, leave=0.0)
    rounds = [*panel.rounds(20)]
    for period in range(3):
        number = sum(each.values.size for each in rounds[5 * period : 5 * period + 5])
        assert number == 1_000
        assert (rounds[5 * period + 4].answers == period + 1).all()
    assert not any(each.values.size for each in rounds[15:])


def test_new_people_answer_after_the_first_have_spent_all() -> None:
    *_, last = Panel([1, 1], 2_000, period=4, limit=1, seed=2, leave=0.1).rounds(40)
    # Mean 2,000 (1 - .9) (1 + .9 + .81 + .729)/4 of new people each round, a deviation of 13; an
    # error that lets new people stay silent gives none.
    assert 100 < last.values.size < 250


def test_a_step_moves_people_to_the_later_law() -> None:
    panel = Panel([1, 1], 40_000, period=2, limit=9, seed=3, change=0.0, step=3, after=[3, 1])
    shares = [each.counts[0] / 40_000 for each in panel.rounds(4)]
    # Five deviations of .0025: a false alarm in 10^6; it would miss a move of less than a point.
    assert np.allclose(shares, [0.5, 0.5, 0.75, 0.75], atol=0.0125)


@pytest.mark.parametrize(
    "wrong",
    [{"period": 0}, {"leave": 1.5}, {"weights": [-1, 2]}, {"after": [1]}],
)
def test_wrong_arguments_are_refused(wrong: dict[str, object]) -> None:
    arguments: dict[str, object] = {"weights": [1, 1], "n": 9, "period": 2, "limit": 1, "seed": 1}
    with pytest.raises(ArgumentError):
        Panel(**(arguments | wrong))  # type: ignore[arg-type]
