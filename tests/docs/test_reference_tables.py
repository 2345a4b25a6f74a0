"""The pages of settings and metrics have the tables that the server's own are made into."""

import re

import pytest
import reference_tables
from tests.docs.markdown import ROOT


@pytest.mark.parametrize("page", ["settings", "metrics"])
def test_the_page_has_the_whole_table(page: str) -> None:
    table = getattr(reference_tables, f"{page}_table")()
    text = (ROOT / "docs" / "reference" / f"{page}.md").read_text(encoding="utf-8")
    assert table in text, f"run docs/scripts/tables.py {page}"
    rows = re.compile(
        r"^\| `(?:LDPRECOVER|ldprecover)_", re.MULTILINE
    )  # the page may have other tables beside it
    assert len(rows.findall(text)) == len(rows.findall(table)) > 0
