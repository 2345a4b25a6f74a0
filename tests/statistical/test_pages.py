"""Tables of the documentation, measured again by the studies that they name."""

import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tests.docs.markdown import ROOT
from tests.statistical.page_tables import TABLES, stated, titled

from ldprecover_experiments import Results, Study
from ldprecover_experiments.studies.paper import STUDIES, PaperStudy
from ldprecover_experiments.studies.plays import PLAYS

pytestmark = pytest.mark.statistical

MEASUREMENTS = ROOT / "docs" / "measurements"


def rows_of(page: Path, header: str) -> list[list[str]]:
    """Return the rows of the one table with this header."""
    _, _, rest = page.read_text().partition(f"\n| {header} |\n")
    lines = rest.partition("\n\n")[0].splitlines()[1:]
    assert lines, f"no table with the header {header}"
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def paper(name: str, protocol: str) -> Results:
    """Return the results of `study paper` on cities, with the page's seed and trials."""
    keys = STUDIES[name]
    attacks = [
        {**attack, "protocols": protocol}
        for attack in keys["attacks"]
        if protocol in attack.get("protocols", [protocol])
    ]
    changed = {"protocols": protocol, "attacks": attacks, "trials": 10, "seed": 0}
    return PaperStudy.of({**keys, **changed}, data=["cities"]).run()


@pytest.mark.parametrize("protocol", ["grr", "oue"])
def test_errors_of_the_paper_are_those_of_the_page(protocol: str) -> None:
    """To the digits of the page: the seed is the page's, so nothing fails by chance."""
    page = rows_of(
        MEASUREMENTS / "reproduction.md",
        r"protocol | attack | poisoned | Norm-Sub | LDPRecover | LDPRecover\* | oracle",
    )
    methods = ("poisoned", "norm-sub", "ldprecover", "ldprecover-star", "oracle")
    measured = [
        [protocol.upper(), re.sub(r" \((.*)\)", r", \1", cell.label)]
        + [f"{means[name].mse:.2e}".replace("e-0", "e-") for name in methods]
        for cell, means in paper("mse", protocol).means.items()
    ]
    assert len(measured) >= 4
    assert measured == [row for row in page if row[:2] in [each[:2] for each in measured]]


@pytest.mark.parametrize(
    ("names", "part", "columns"),
    [
        (["gain", "after `unmix`"], {"protocols": ["grr"]}, ["GRR"]),
        (["gain", "after `unmix`"], {"protocols": ["llh"], "attacks": ["none", "mga"]}, ["LLH"]),
        (["OUE"], {"protocols": ["oue"], "attacks": ["apa"]}, ["apa"]),
        (["OLH"], {"protocols": ["olh"], "attacks": ["none"]}, ["none"]),
        (["no attack"], {"protocols": ["sue"], "epsilon": ["1.0"]}, ["ε = 1"]),
        (["six data sets"], {"data": ["geometric"]}, ["geometric"]),
        (["attack on `unmix`"], {"attacks": ["bait"]}, ["ratio", "least", "intervals"]),
        (["gain, k ="], {"questions": ["1", "20"]}, ["1", "20"]),
        (["method"], {}, ["clean", "worst", "mga", "apa", "cancel", "mimicry"]),
    ],
)
def test_tables_of_studies_are_those_of_the_page(
    names: list[str], part: dict[str, list[str]], columns: list[str]
) -> None:
    """To the digits of the page, in the columns that need no more than this part of the study."""
    study = Study.load(TABLES[names[0]].study)
    for key, values in part.items():
        chosen = tuple(each for each in getattr(study, key) if title(each) in values)
        assert len(chosen) == len(values)
        study = study.model_copy(update={key: chosen})
    results = study.run()
    for name in names:
        entries = {titled(row): cells for row, cells in TABLES[name].entries(results).items()}
        page = stated(name)
        assert entries.keys() <= page.keys()
        for row, column in product(page, columns):
            if row in entries or f"{TABLES[name].rows}s" not in part:
                shown = entries.get(row, {}).get(column, "")
                assert page[row][column] == shown, (name, row, column)


def test_largest_measures_of_the_adversary_are_those_of_the_page() -> None:
    """In the rounds that the page names; others may have become larger."""
    header = "measure of `adversary` | mean | largest | in round"
    for name, _, largest, number in rows_of(MEASUREMENTS / "results.md", header):
        _, measures = PLAYS["adversary"](1, int(number))
        assert f"{measures[name]:.4g}" == largest


def title(value: Any) -> str:
    """Return how the parameter of a part names an attack, a data set, a protocol or a number."""
    return str(getattr(value, "label", None) or getattr(value, "name", value))
