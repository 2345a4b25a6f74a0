"""The pages of settings and metrics have the tables that the server's own are made into."""

import importlib.util
from types import ModuleType

import pytest
from tests.docs.markdown import ROOT


@pytest.fixture(scope="module")
def tables() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference_tables", ROOT / "docs/scripts/reference_tables.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", ["settings", "metrics"])
def test_the_page_has_the_whole_table(page: str, tables: ModuleType) -> None:
    table = getattr(tables, f"{page}_table")()
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    assert table in text, f"run docs/scripts/reference_tables.py {page}"
    assert text.count("\n| ") == f"\n{table}".count("\n| ")
