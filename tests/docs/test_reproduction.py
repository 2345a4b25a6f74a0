"""The numbers of docs/measurements/reproduction.md are those of the means that are kept
beside it.
"""

import csv
import re
import subprocess
import sys

import pytest
from tests.docs.markdown import ROOT, Page

from ldprecover_experiments.paper import EXPERIMENTS, cells_of
from ldprecover_experiments.tables import COLUMNS

KEPT = ROOT / "docs" / "measurements" / "reproduction" / "summary.csv"


@pytest.fixture(scope="module")
def tables() -> str:
    """What the script prints from the kept means."""
    script = ROOT / "docs" / "scripts" / "reproduction_tables.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    return done.stdout


def test_the_page_has_the_tables_that_the_script_prints(tables: str) -> None:
    """To the digit, and in its order. No chance in it: the means are a file."""
    page = Page(ROOT / "docs" / "measurements" / "reproduction.md").text
    at = 0
    for table in tables.strip().split("\n\n"):
        at = page.find(table, at)
        assert at >= 0, f"docs/measurements/reproduction.md must say:\n\n{table}"


def test_no_sentence_of_the_page_has_an_error_that_no_table_has(tables: str) -> None:
    """Errors are the numbers with an exponent. Two are bounds and roundings that the sentence
    itself explains.
    """
    page = Page(ROOT / "docs" / "measurements" / "reproduction.md").text
    numbers = set(re.findall(r"\d\.\d+e-?\d+", page))
    assert numbers - set(re.findall(r"\d\.\d+e-?\d+", tables)) == {"3.9e-4", "5.3e-4"}


def test_the_page_says_how_many_cells_there_are() -> None:
    cells = cells_of(EXPERIMENTS, ["cities", "fire"], 10)
    assert (
        f"All of it is {len(cells):,} cells"
        in Page(ROOT / "docs" / "measurements" / "reproduction.md").text
    )


def test_the_kept_means_are_of_a_whole_run() -> None:
    with KEPT.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert {row["trials"] for row in rows} == {"10"}
    assert {row["data"] for row in rows} == {"cities", "fire"}
