"""What is written for contributors is so: files and terms exist, and paths are short."""

import re

import pytest
from tests.docs.markdown import ROOT, Page

ARCHITECTURE = Page(ROOT / "docs" / "architecture.md")
DECISIONS = Page(ROOT / "docs" / "decisions" / "README.md")
PAGES = [
    ARCHITECTURE,
    DECISIONS,
    *(Page(ROOT / name) for name in ("CONTRIBUTING.md", "SECURITY.md")),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_and_folder_that_is_named_exists(page: Page) -> None:
    """Names are from the root of the repository, or within the server."""
    named = [
        span
        for span in page.code
        if re.fullmatch(r"\.?[\w*-]+(/[\w.*-]+)*(\.(py|md|toml|lock|sh|yaml|yml)|/)", span)
    ]
    for name in named:
        assert any(
            next(root.glob(name), None) for root in (ROOT, ROOT / "server" / "ldprecover_server")
        ), name


def test_paths_name_modules_of_the_server() -> None:
    """So that the test above cannot pass for want of names."""
    for section in ("report", "recovery"):
        path = ARCHITECTURE.prose.partition(f"\n## The path of a {section}\n")[2].partition(
            "\n## "
        )[0]
        assert len(set(re.findall(r"`([\w/]+\.py)`", path))) > 8


def test_each_decision_says_why_and_when_to_look_again() -> None:
    decisions = DECISIONS.text.split("\n## ")[1:]
    assert decisions
    for text in decisions:
        marked = re.findall(r"^\*\*(.+?)\.\*\*", text, re.M)
        assert marked == ["Why", "What it costs", "When to look again"], text
