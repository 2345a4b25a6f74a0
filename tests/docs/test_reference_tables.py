"""Generated pages and tables are current, and the README has the right numbers."""

import re

import api_page
import commands_page
import pytest
import reference_tables
from tests.docs.markdown import ROOT

from ldprecover.protocols import PROTOCOLS
from ldprecover_attacker import ATTACKS


@pytest.mark.parametrize("page", ["settings", "metrics"])
def test_the_page_has_the_whole_table(page: str) -> None:
    table = getattr(reference_tables, f"{page}_table")()
    text = (ROOT / "docs" / "reference" / f"{page}.md").read_text(encoding="utf-8")
    assert table in text, "run docs/scripts/reference_tables.py"
    rows = re.compile(
        r"^\| `(?:LDPRECOVER|ldprecover)_", re.MULTILINE
    )  # the page may have other tables beside it
    assert len(rows.findall(text)) == len(rows.findall(table)) > 0


def test_the_api_page_is_current() -> None:
    assert api_page.PAGE.read_text(encoding="utf-8") == api_page.api_page(), (
        "run python docs/scripts/api_page.py"
    )


def test_the_commands_page_is_current() -> None:
    page = commands_page.PAGE.read_text(encoding="utf-8")
    assert page == commands_page.commands_page(), "run python docs/scripts/commands_page.py"


def test_the_readme_counts_attacks_and_protocols() -> None:
    words = {7: "seven", 12: "twelve"}
    counts = f"by {words[len(ATTACKS)]} attacks on {words[len(PROTOCOLS)]} protocols"
    assert counts in (ROOT / "README.md").read_text(encoding="utf-8")
