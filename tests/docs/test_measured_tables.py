"""The measured tables of the pages are what their scripts print, with the setting of the page, to the digit."""

import attack_table
import methods_table
import pytest
import recovery_table
from setting import PROTOCOLS
from tests.docs.markdown import ROOT, Page

from ldprecover.recovery import METHODS


def words(page: str) -> str:
    return " ".join(Page(ROOT / "docs" / page).text.split())


def assert_has(page: str, table: str) -> None:
    text = words(page)
    for line in table.splitlines():
        assert " ".join(line.split()) in text, f"docs/{page} must say:\n\n{table}"


def test_attacks_are_measured() -> None:
    tables = list(attack_table.tables(attack_table.DEFAULT))
    for table in (*tables, attack_table.choices(tables)):
        assert_has("attacks.md", table)


def test_recoveries_are_measured() -> None:
    for table in recovery_table.tables(recovery_table.DEFAULT):
        assert_has("recovery.md", table)


def test_methods_are_measured_for_grr() -> None:
    """The other two protocols take a minute."""
    assert_has("recovery.md", methods_table.table(methods_table.DEFAULT, "grr"))


def test_the_choice_between_methods_follows_from_the_pages_own_tables() -> None:
    text = Page(ROOT / "docs" / "recovery.md").text
    compared = text[text.index("### Methods compared") :]
    tables = {}
    for protocol in PROTOCOLS:
        start = compared.index(f"\n| {protocol.upper()} | none |") + 1
        tables[protocol] = compared[start : compared.index("\n\n", start)]
    assert_has("recovery.md", methods_table.choices(tables))


@pytest.mark.parametrize("name", METHODS)
def test_the_page_names_every_method(name: str) -> None:
    assert f"`{name.removesuffix('-unprojected')}`" in words("recovery.md")
