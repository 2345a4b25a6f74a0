"""Bisection of an interval on either side."""

from ldprecover.estimation.bisection import bisect


def test_end_of_the_numbers_at_which_it_holds() -> None:
    tested: list[float] = []

    def is_small(x: float) -> bool:
        tested.append(x)
        return x < 0.7

    assert bisect(is_small, 0.0, 1.0, 3) == 0.625
    assert tested == [0.5, 0.75, 0.625]
    assert bisect(lambda x: x > 2.2, holds=4.0, fails=0.0, halvings=2) == 3.0
    assert bisect(is_small, 0.0, 1.0, 0) == 0.0
