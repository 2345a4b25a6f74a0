"""The script that measures advice on several worlds: its tables on a few users, and what must hold in them."""

import advice_table
import pytest
from tables import rewritten
from tests.docs.markdown import ROOT, Page

from ldprecover_experiments.setting import crowds_of
from ldprecover_experiments.tables import Table


@pytest.fixture(scope="module")
def printed() -> dict[str, Table]:
    """Each table of a small run, by its first columns."""
    crowds = crowds_of(["geometric"], users=5_000)
    return {" ".join(table.columns[:2]): table for table in advice_table.tables(crowds, 1, 1, reports=True)}


def test_every_table_is_printed_with_a_number_where_one_is_due(printed: dict[str, Table]) -> None:
    assert list(printed) == ["method clean", "protocol 1/d is better in", "named protocol", "data d", "method protocol"]
    for table in printed.values():
        assert table.rows
        assert all(len(row) == len(table.columns) for row in table.rows)


def test_projection_is_not_among_what_is_compared_with_it(printed: dict[str, Table]) -> None:
    rows = {row[0]: row for row in printed["method clean"].rows}
    assert "norm-sub" not in rows
    # With nobody malicious the true eta is 0, and LDPRecover is the projection.
    assert rows["LDPRecover, true η"][1:4] == ["1.00", "1", "1"]
    assert rows["LDPRecover"][-1].endswith(f" of {5 * (3 + 2 * 3 * 5 - 2)}")


def test_grr_gains_more_where_the_domain_is_wide_for_its_budget(printed: dict[str, Table]) -> None:
    """d against r(2e^ε + 1): the exact gains of GRR and OUE cross there."""
    for row in printed["data d"].rows:
        ratio, width = float(row[-2]), float(row[-1])
        assert (ratio > 1) == (width > 1)


def test_every_table_of_counts_has_its_place_on_the_page(printed: dict[str, Table]) -> None:
    text = Page(ROOT / "docs" / "evaluation.md").text
    of_counts = [table.markdown() for table in printed.values() if table.columns[:2] != ("method", "protocol")]
    assert len(of_counts) == 4
    assert rewritten(text, of_counts) != text
