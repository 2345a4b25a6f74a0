"""Simulated years of a series."""

from ldprecover_experiments.studies.series import LIMIT, play


def test_a_year_keeps_the_limit_and_covers_its_answers() -> None:
    title, measures = play(0, 0)
    assert title == "year 0"
    assert measures["most epsilon of a person"] == LIMIT
    # An item's intervals of overlapping windows miss together: over 100 years the deviation of a
    # year's coverage is .054. An error that halves the intervals (.67) is seen in most years.
    assert measures["coverage of a window"] > 0.7
    assert measures["attack on the attacked window near certain"] == 1
