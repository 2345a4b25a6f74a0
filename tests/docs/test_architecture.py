"""What is written for contributors is so: files and terms exist, and paths are short."""

import re
from itertools import pairwise

import pytest
from tests.docs.markdown import ROOT, Page

ARCHITECTURE = Page(ROOT / "docs" / "architecture.md")
DECISIONS = Page(ROOT / "docs" / "decisions" / "README.md")
PAGES = [
    ARCHITECTURE,
    DECISIONS,
    *(Page(ROOT / name) for name in ("CONTRIBUTING.md", "SECURITY.md")),
]


def rows(section: str) -> list[list[str]]:
    """Return the cells of the first table below a heading of the page on architecture, without its
    head.
    """
    text = ARCHITECTURE.prose.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in re.findall(r"^\|.*\|$", text, re.M)
    ][2:]


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


def test_has_at_most_25_terms_each_once() -> None:
    terms = [term.strip() for first, *_ in rows("Terms") for term in first.split(",")]
    assert len(rows("Terms")) <= 25
    assert all(a != b for a, b in pairwise(sorted(terms)))


def test_paths_have_few_steps() -> None:
    for section, limit in (("report", 12), ("recovery", 10)):
        path = ARCHITECTURE.prose.partition(f"\n## The path of a {section}\n")[2]
        steps = re.findall(r"^\d+\. ", path.partition("\n## ")[0], re.M)
        assert 5 < len(steps) <= limit


def test_each_decision_says_why_and_when_to_look_again() -> None:
    decisions = DECISIONS.text.split("\n## ")[1:]
    assert decisions
    for text in decisions:
        marked = re.findall(r"^\*\*(.+?)\.\*\*", text, re.M)
        assert marked == ["Why", "What it costs", "When to look again"], text
