"""Simulated years of a series."""

from ldprecover_experiments.studies.series import LIMIT, play, series


def test_a_year_keeps_the_limit_and_covers_its_answers() -> None:
    measures = play(0, 0)
    assert measures["most epsilon of a person"] == LIMIT
    # An item's intervals of overlapping windows miss together: over 100 years the deviation of a
    # year's coverage is .054. An error that halves the intervals (.67) is seen in most years.
    assert measures["coverage of a window"] > 0.7
    assert measures["attack on the attacked window near certain"] == 1


def test_table_has_the_mean_of_each_measure() -> None:
    steps: list[tuple[int, int]] = []
    table = series(0, 2, lambda done, total: steps.append((done, total)))
    assert steps == [(1, 2), (2, 2)]
    years = [play(0, i) for i in range(2)]
    assert [row[0] for row in table.rows] == [*years[0]]
    for row in table.rows:
        assert row[1] == f"{sum(year[row[0]] for year in years) / 2:.4g}"
