"""The tables of docs/recovery.md that compare all methods are what their script prints, and no method is missing."""

import importlib.util
import sys
from types import ModuleType

import pytest
from tests.docs.markdown import ROOT, Page

from ldprecover.recovery import METHODS


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script as a module."""
    name = "methods_table"
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def page() -> str:
    return " ".join(Page(ROOT / "docs" / "recovery.md").text.split())


def test_the_page_has_the_table_that_the_script_prints_for_grr(script: ModuleType, page: str) -> None:
    """With the seed and trials of the page, to the digit; the other two protocols take a minute. No chance in it."""
    for line in script.table(script.Setting(), "grr").splitlines():
        assert " ".join(line.split()) in page


def test_the_page_names_every_method(page: str) -> None:
    for name in METHODS:
        assert f"`{name.removesuffix('-unprojected')}`" in page
