"""Tables of the documentation, measured again by the studies that they name."""

import re
from pathlib import Path

import pytest
from tests.docs.markdown import ROOT

from ldprecover_experiments import Results, Study
from ldprecover_experiments.studies.paper import STUDIES, PaperStudy

pytestmark = pytest.mark.statistical

MEASUREMENTS = ROOT / "docs" / "measurements"


def rows_of(page: Path, header: str) -> list[list[str]]:
    """Return the rows of the one table with this header."""
    _, _, rest = page.read_text().partition(f"\n| {header} |\n")
    lines = rest.partition("\n\n")[0].splitlines()[1:]
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


def test_errors_and_gains_of_methods_are_those_of_the_page() -> None:
    """To seven standard errors of five trials less twenty, and the page's rounding.

    By Student's law another seed fails 3e-5 times; this one is fixed. A number that is off by less
    is missed.
    """
    page = rows_of(MEASUREMENTS / "results.md", "OUE | none | MGA, crafted | MGA-A, r' = 4")
    named = {"method": "ldprecover", "targets": True, "name": "`ldprecover`, targets"}
    right = {"method": "ldprecover", "support": True, "eta": "true"}
    study = Study.of(
        {
            "protocols": "oue",
            "attacks": ["none", "mga", {"name": "mga-a", "each": 4}],
            "methods": [
                {"method": "norm-sub", "name": "`norm-sub`"},
                {"method": "ldprecover", "name": "`ldprecover`"},
                named,
                right | {"name": "`ldprecover`, right model and η"},
            ],
            "trials": 20,
        }
    )
    compared = 0
    for column, means in enumerate(study.run().means.values(), 1):
        for method, *cells in page:
            # Without an attack the study names other items than the page's.
            if method not in means or (column == 1 and method == named["name"]):
                continue
            error, _, gain = cells[column - 1].partition(" ")
            numbers = {"mse": (float(error), 0.05 * 10 ** float(error.partition("e")[2]))}
            if gain and column > 1:
                numbers["fg"] = (float(gain.strip("()")), 0.005)
            for number, (stated, rounding) in numbers.items():
                mean, deviation = means[method].with_error(number)
                assert mean is not None
                assert deviation is not None
                # The deviation of a mean of 20, times sqrt(20 (1/5 + 1/20)).
                assert abs(mean - stated) < 7 * deviation * 5**0.5 + rounding, (method, number)
                compared += 1
    assert compared == 24
