"""The script that measures advice on several worlds: its tables on a few users, and what must hold
in them.
"""

import advice_table
import pytest
from tables import rewritten
from tests.docs.markdown import ROOT, Page

from ldprecover_experiments.parameters import load_users_by_data
from ldprecover_experiments.tables import Table

EPSILONS = (0.5, 4.0)


@pytest.fixture(scope="module")
def printed() -> dict[str, Table]:
    """Each table of a small run, by its first columns."""
    users_by_data = load_users_by_data(["geometric"], users=5_000)
    with pytest.MonkeyPatch.context() as fewer:
        fewer.setattr(advice_table, "EPSILONS", EPSILONS)
        fewer.setattr(advice_table, "BETAS", (0.05,))
        for name in (
            "COUNTED",
            "READING",
        ):  # but un-mixing, which takes longer than all others together
            fewer.setattr(
                advice_table,
                name,
                [spec for spec in getattr(advice_table, name) if spec.method != "unmix"],
            )
        return {
            " ".join(table.columns[:2]): table
            for table in advice_table.tables(users_by_data, 1, 1, reports=True)
        }


def test_every_table_is_printed_with_a_number_where_one_is_due(printed: dict[str, Table]) -> None:
    assert list(printed) == [
        "method clean",
        "protocol 1/d is better in",
        "named protocol",
        "data d",
        "method protocol",
    ]
    for table in printed.values():
        assert table.rows
        assert all(len(row) == len(table.columns) for row in table.rows)


def test_projection_is_not_compared_with_itself(printed: dict[str, Table]) -> None:
    rows = {row[0]: row for row in printed["method clean"].rows}
    assert "norm-sub" not in rows
    # With nobody malicious the true eta is 0, and LDPRecover is the projection.
    assert rows["LDPRecover, true η"][1:4] == ["1.00", "1", "1"]
    attacked = 3 * len(advice_table.ATTACKS) - 1  # GRR has no crafted reports
    assert rows["LDPRecover"][-1].endswith(f" of {len(EPSILONS) * (3 + attacked)}")


def test_grr_gains_more_where_the_domain_is_wide_for_its_budget(printed: dict[str, Table]) -> None:
    """d against r(2e^ε + 1): the exact gains of GRR and OUE cross there."""
    told = {(float(row[-2]) > 1, float(row[-1]) > 1) for row in printed["data d"].rows}
    assert told == {(True, True), (False, False)}


def test_every_table_of_counts_has_its_place_on_the_page(printed: dict[str, Table]) -> None:
    text = Page(ROOT / "docs" / "measurements" / "evaluation.md").text
    of_counts = [
        table.markdown()
        for table in printed.values()
        if table.columns[:2] != ("method", "protocol")
    ]
    assert len(of_counts) == 4
    assert rewritten(text, of_counts) != text
