"""The table of public names is true, and the pages use public names alone."""

import re

import pytest
from tests.docs.markdown import PAGES, ROOT, Page
from tests.docs.public_names import ALL, imports, public_names, rows
from tests.docs.surface import SNAPSHOT, mark, surface

PYTHON = sorted((ROOT / "docs" / "reference" / "python").glob("*.md"))


def test_every_package_has_its_row() -> None:
    packages = {path.parent.name for path in ROOT.glob("*/ldprecover*/__init__.py")}
    assert packages - set(rows()) == {"ldprecover_cli", "ldprecover_interface"}


def test_every_public_module_has_a_page() -> None:
    documented = {
        line.removeprefix(".. automodule:: ")
        for path in PYTHON
        for line in path.read_text().splitlines()
        if line.startswith(".. automodule:: ")
    }
    assert {module for module, names in rows().items() if ALL in names} <= documented


@pytest.mark.parametrize(
    ("page", "module"), [("ldprecover.md", "ldprecover"), ("client.md", "ldprecover_client")]
)
def test_pages_in_groups_have_every_name(page: str, module: str) -> None:
    text = (ROOT / "docs" / "reference" / "python" / page).read_text()
    shown = [
        line.split()[-1] for line in text.splitlines() if line.startswith((".. auto", ".. py:"))
    ]
    assert sorted(shown) == sorted([module, *public_names()[module] - {"__version__"}])


def test_python_page_lists_its_pages() -> None:
    links = Page(ROOT / "docs" / "reference" / "python.md").links
    assert {f"python/{path.name}" for path in PYTHON} <= set(links)


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.path.parent.name != "measurements"],
    ids=lambda page: page.name,
)
def test_examples_import_public_names(page: Page) -> None:
    """Pages on measurements show how the numbers were made, from inside."""
    public = public_names()
    for block in page.blocks:
        if block.language == "python":
            for module, name in imports(block.text):
                assert module in public, module
                assert not name or name in public[module], f"{module}.{name}"


def test_public_surface_is_its_snapshot() -> None:
    snapshot = SNAPSHOT.read_text(encoding="utf-8").splitlines()
    assert surface() == snapshot, "run python -m tests.docs.surface"


def test_changelog_has_the_mark_of_the_snapshot() -> None:
    newest = re.findall("<!-- surface .* -->", Page(ROOT / "CHANGELOG.md").text)[0]
    assert newest == mark(), f"say what changes below {mark()}"
