"""The numbers of docs/measurements/reproduction.md are those of the means beside it."""

import csv
import re

from reproduction_means import SUMMARY, Means
from reproduction_tables import tables
from tables import read

from ldprecover_experiments.paper import EXPERIMENTS, cells_of
from ldprecover_experiments.tables import COLUMNS

PAGE = read("reproduction")
TABLES = list(tables(Means(SUMMARY)))


def test_page_has_the_tables_of_the_means() -> None:
    """To the digit, and in their order: the means are a file."""
    at = 0
    for table in TABLES:
        at = PAGE.find(table, at)
        assert at >= 0, f"docs/measurements/reproduction.md must contain:\n\n{table}"


def test_every_error_in_a_sentence_is_in_a_table() -> None:
    """Errors are the numbers with an exponent. The two others are bounds that the page explains."""
    page, printed = (set(re.findall(r"\d\.\d+e-?\d+", text)) for text in (PAGE, "".join(TABLES)))
    assert page - printed == {"3.9e-4", "5.3e-4"}


def test_page_states_the_number_of_cells() -> None:
    cells = cells_of(EXPERIMENTS, ["cities", "fire"], 10)
    assert f"All of it is {len(cells):,} cells" in PAGE


def test_means_are_of_a_whole_run() -> None:
    with SUMMARY.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert {row["trials"] for row in rows} == {"10"}
    assert {row["data"] for row in rows} == {"cities", "fire"}
