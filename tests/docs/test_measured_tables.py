"""The measured tables have their places on the pages, and what follows from them does.

That their numbers are what is measured `make docs-tables` sees to: it takes minutes.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import attack_table
import methods_table
import pytest
import quarantine_table
import recovery_table
from round_setting import rows_of
from tables import read, rewritten

from ldprecover.protocols import PROTOCOLS
from ldprecover.recovery import METHODS
from ldprecover_experiments.tables import Table

FEW: dict[str, Any] = {"users": 3_000, "trials": 1}


def squeezed(text: str) -> str:
    return " ".join(text.split())


def few(page: str) -> Iterator[str]:
    if page == "attacks":
        yield from attack_table.tables(replace(attack_table.DEFAULT, **FEW))
        yield from quarantine_table.tables(replace(quarantine_table.DEFAULT, **FEW))
    else:
        yield from recovery_table.tables(replace(recovery_table.DEFAULT, **FEW))
        yield methods_table.table(replace(methods_table.DEFAULT, **FEW), "grr")


@pytest.mark.parametrize("page", ["attacks", "recovery"])
def test_every_table_has_a_place_on_its_page_with_the_same_rows(page: str) -> None:
    """A few users report, so that the numbers are others; the places, headers and rows are the
    same.
    """
    text, printed = read(page), list(few(page))
    new = rewritten(text, printed)
    assert new != text
    for table in printed:
        assert squeezed(table) in squeezed(new)
    assert [line.split("|")[1].strip() for line in new.splitlines() if line.startswith("|")] == [
        line.split("|")[1].strip() for line in text.splitlines() if line.startswith("|")
    ]


def own(page: str, header: str) -> dict[str, str]:
    """Return the tables of a page with such a header, by protocol."""
    found = {}
    for protocol in PROTOCOLS:
        start = page.index(f"\n| {protocol.upper()} | {header}") + 1
        found[protocol] = page[start : page.index("\n\n", start)]
    return found


def test_choice_of_methods_follows_from_the_tables() -> None:
    text = read("recovery")
    tables = own(text[text.index("## Methods compared") :], "none |")
    assert squeezed(methods_table.choices(tables)) in squeezed(text)


def test_choice_of_attacks_follows_from_the_tables() -> None:
    text = read("attacks")
    assert squeezed(attack_table.choices(own(text, "S |").values())) in squeezed(text)


@pytest.mark.parametrize("name", METHODS)
def test_the_page_names_every_method(name: str) -> None:
    assert f"`{name.removesuffix('-unprojected')}`" in squeezed(read("recovery"))


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


def test_tables_of_one_header_are_replaced_in_their_order() -> None:
    new = rewritten(
        PAGE, [Table("ab", [["x", "3"]]).markdown(), Table("ab", [["y", "4"]]).markdown()]
    )
    assert new == PAGE.replace("|---|---|\n| x | 1 |", "| --- | --- |\n| x | 3 |").replace(
        "| x | 2 |", "| y | 4 |"
    )


def test_paragraph_is_found_by_its_first_words() -> None:
    new = rewritten(PAGE, ["One sentence that has the number 2 in it."])
    assert new == PAGE.replace("the\nnumber 1", "the number 2")


def test_equal_text_keeps_its_line_breaks() -> None:
    assert rewritten(PAGE, ["One sentence that has the number 1 in it."]) == PAGE


@pytest.mark.parametrize(
    "printed", ["| a | c |\n| --- | --- |", "Another sentence that has a number in it."]
)
def test_rejects_table_without_place(printed: str) -> None:
    with pytest.raises(LookupError, match="no place"):
        rewritten(PAGE, [printed])


def test_a_table_is_read_as_it_is_written() -> None:
    table = Table(["", "a", "b"], [["x", "1", ""], ["y", "", "2"]])
    assert rows_of(table.markdown()) == {
        "x": {"": "x", "a": "1", "b": ""},
        "y": {"": "y", "a": "", "b": "2"},
    }
