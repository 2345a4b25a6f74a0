"""The script that measures what canaries give to un-mixing: whom its attacks raise, and its table
on few users.
"""

import canary_table
from tables import rewritten
from tests.docs.markdown import ROOT, Page

from ldprecover_experiments.attacks import AttackSpec
from ldprecover_experiments.parameters import Cell, load_users_by_data
from ldprecover_experiments.poisoned_round import RoundSimulation


def test_targets_are_never_canaries() -> None:
    """One draw of ten in six of 67 items has no canary, so that many trials are passed over."""
    genuine_users = canary_table.watched(load_users_by_data(["geometric"])["geometric"])
    assert genuine_users.items[57:] == tuple(f"canary {i}" for i in range(1, 11))
    assert genuine_users.counts[57:].sum() == 0
    trials = list(
        canary_table.sparing(
            Cell("geometric", "grr", AttackSpec("mga"), "sampled"), genuine_users, 5
        )
    )
    assert len({cell.trial for cell in trials}) == 5
    assert all(
        max(RoundSimulation(cell, genuine_users, 0).targets or (99,)) < 57 for cell in trials
    )


def test_table_is_complete_and_has_a_place_on_its_page() -> None:
    table = canary_table.table(["geometric"], 2_000, 1, ("none", "MGA"))
    assert [row[:2] for row in table.rows] == [
        [attack, protocol] for attack in ("none", "MGA") for protocol in ("GRR", "OUE", "OLH")
    ] + [["all", ""]]
    for row in table.rows:
        numbers = row[2:-2] if row[0] == "none" else row[2:]
        assert all(float(number) >= 0 for number in numbers)
    text = Page(ROOT / "docs" / "explanation" / "unmixing.md").text
    assert rewritten(text, [table.markdown()]) != text
