"""The tables of docs/attacks.md are what their script prints."""

import importlib.util
import sys
from types import ModuleType

import pytest
from tests.docs.markdown import ROOT, Page


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script as a module."""
    name = "attack_table"
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_the_page_has_the_tables_that_the_script_prints(script: ModuleType) -> None:
    """With the seed of the page, to the digit. No chance in it."""
    page = " ".join(Page(ROOT / "docs" / "attacks.md").text.split())
    for table in script.tables(script.Setting()):
        for line in table.splitlines():
            assert " ".join(line.split()) in page, f"docs/attacks.md must say:\n\n{table}"
