"""The measured tables have their places on the pages, and the tables of choices follow from them.

`make docs-tables` measures their numbers again, which takes minutes.
"""

from itertools import chain

import adversarial_table
import advice_tables
import attack_tables
import canary_table
import pytest
import recovery_tables
from measured_rounds import Rounds, cells_of, rows
from tables import read, rewritten

from ldprecover.protocols import PROTOCOLS
from ldprecover.recovery import METHODS
from ldprecover_experiments.attacks import AttackSpec
from ldprecover_experiments.parameters import Cell, load_users_by_data
from ldprecover_experiments.poisoned_round import RoundSimulation
from ldprecover_experiments.tables import Table

EPSILONS = [0.5, 4.0]
FEW = {"data": ["geometric"], "users": 5_000, "trials": 1, "epsilon": EPSILONS, "beta": 0.05}


def squeezed(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module")
def advice() -> dict[str, Table]:
    """The tables of advice on few users, by their first columns."""
    fast = ["norm-sub", "diffstats", {"method": "fiad", "name": "fiad, least = 3"}]
    tables = (*advice_tables.tables(**FEW), advice_tables.readers(**FEW, methods=fast))
    return {" ".join(table.columns[:2]): table for table in tables}


@pytest.fixture(scope="module")
def canaries() -> Table:
    return canary_table.table(["geometric"], 2_000, 1, ("none", "MGA"))


def first_cells(text: str) -> list[str]:
    return [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("|")]


def test_rows_of_tables_are_those_of_the_page() -> None:
    """A few users report, so that only the numbers differ."""

    few = Rounds(3_000)
    measured = {
        "attacks": attack_tables.tables_of(Rounds(500), "olh", rows("attacks")["olh"]),
        "recovery": chain(
            recovery_tables.recovery_tables(few),
            recovery_tables.methods_tables(few, {"grr": rows("methods")["grr"]}),
        ),
    }
    for page, tables in measured.items():
        text, printed = read(page), list(tables)
        new = rewritten(text, printed)
        assert new != text
        assert all(squeezed(table) in squeezed(new) for table in printed)
        assert first_cells(new) == first_cells(text)
    for protocol, table in own(read("attacks"), "S |").items():
        assert first_cells(table)[2:] == rows("attacks")[protocol]


def test_tables_of_evaluations_have_their_places(advice: dict[str, Table], canaries: Table) -> None:
    adversarial = adversarial_table.table(["steps"], 2_000, ("history", "clean"), 0.15)
    for page, tables in (
        ("evaluation", advice.values()),
        ("unmixing", [canaries]),
        ("adversarial", [adversarial]),
    ):
        text = read(page)
        assert rewritten(text, [table.markdown() for table in tables]) != text


def own(page: str, header: str) -> dict[str, str]:
    """Return the tables of a page with such a header, by protocol."""
    tables = {}
    for protocol in PROTOCOLS:
        start = page.index(f"\n| {protocol.upper()} | {header}") + 1
        tables[protocol] = page[start : page.index("\n\n", start)]
    return tables


def test_choices_follow_from_the_tables() -> None:
    recovery, attacks = read("recovery"), read("attacks")
    methods = own(recovery[recovery.index("## Methods compared") :], "none |")
    assert squeezed(recovery_tables.choices(methods)) in squeezed(recovery)
    assert squeezed(attack_tables.choices(own(attacks, "S |").values())) in squeezed(attacks)


@pytest.mark.parametrize("name", METHODS)
def test_page_names_every_method(name: str) -> None:
    assert f"`{name.removesuffix('-unprojected')}`" in squeezed(read("recovery"))


def test_advice_has_a_number_in_every_cell(advice: dict[str, Table]) -> None:
    assert list(advice) == [
        "method clean",
        "protocol 1/d is better in",
        "named protocol",
        "data d",
        "method protocol",
    ]
    for table in advice.values():
        assert table.rows
        assert all(len(row) == len(table.columns) and all(row) for row in table.rows)


def test_projection_is_not_compared_with_itself(advice: dict[str, Table]) -> None:
    lines = {row[0]: row for row in advice["method clean"].rows}
    assert "norm-sub" not in lines
    # With nobody malicious the true eta is 0, and LDPRecover is the projection.
    assert lines["LDPRecover, true η"][1:4] == ["1.00", "1", "1"]
    # Each of three protocols without an attack and under five; GRR has no crafted reports.
    assert lines["LDPRecover"][-1].endswith(f" of {len(EPSILONS) * (3 * 6 - 1)}")


def test_grr_gains_more_on_a_wide_domain(advice: dict[str, Table]) -> None:
    """d against r(2e^ε + 1): the exact gains of GRR and OUE cross there."""
    signs = {(float(row[-2]) > 1, float(row[-1]) > 1) for row in advice["data d"].rows}
    assert signs == {(True, True), (False, False)}


def test_targets_are_never_canaries() -> None:
    """One draw of ten in six of 67 items has no canary, so that many trials are skipped."""
    users = load_users_by_data(["geometric"])["geometric"].with_canaries(10)
    assert users.items[57:] == tuple(f"canary {i}" for i in range(1, 11))
    assert users.counts[57:].sum() == 0
    cell = Cell("geometric", "grr", AttackSpec("mga"), "sampled")
    trials = list(canary_table.sparing(cell, users, 5))
    assert len({each.trial for each in trials}) == 5
    assert all(max(RoundSimulation(each, users, 0).targets or (99,)) < 57 for each in trials)


def test_canaries_are_measured_by_attack_and_protocol(canaries: Table) -> None:
    assert [row[:2] for row in canaries.rows] == [
        [attack, protocol] for attack in ("none", "MGA") for protocol in ("GRR", "OUE", "OLH")
    ] + [["all", ""]]
    for row in canaries.rows:
        assert all(float(number) >= 0 for number in (row[2:-2] if row[0] == "none" else row[2:]))


PAGE = """# Page

One sentence that has the
number 1 in it.

| a | b |
|---|---|
| x | 1 |

Between.

| a | b |
| --- | --- |
| x | 2 |
"""


def test_tables_and_paragraphs_are_replaced_in_order() -> None:
    first, second = Table("ab", [["x", "3"]]), Table("ab", [["y", "4"]])
    sentence = "One sentence that has the number 2 in it."
    new = rewritten(PAGE, [first.markdown(), sentence, second.markdown()])
    assert new == (
        PAGE.replace("|---|---|\n| x | 1 |", "| --- | --- |\n| x | 3 |")
        .replace("| x | 2 |", "| y | 4 |")
        .replace("the\nnumber 1", "the number 2")
    )


def test_equal_text_keeps_its_line_breaks() -> None:
    assert rewritten(PAGE, ["One sentence that has the number 1 in it."]) == PAGE


@pytest.mark.parametrize(
    "printed", ["| a | c |\n| --- | --- |", "Another sentence that has a number in it."]
)
def test_rejects_table_without_place(printed: str) -> None:
    with pytest.raises(LookupError, match="no place"):
        rewritten(PAGE, [printed])


def test_cells_of_a_table_are_read_back() -> None:
    table = Table(["", "a", "b"], [["x", "1", ""], ["y", "", "2"]])
    assert cells_of(table.markdown()) == {
        "x": {"": "x", "a": "1", "b": ""},
        "y": {"": "y", "a": "", "b": "2"},
    }
