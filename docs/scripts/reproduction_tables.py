"""The tables of docs/measurements/reproduction.md, from the means of a run.

Theory is computed from the formulas; the paper's numbers are beside its experiments.
`reproduction.toml` states the tables that hold means alone.
"""

import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from reproduction_findings import findings, numbers
from reproduction_means import Means, shown

from ldprecover import frequency_oracle
from ldprecover_client import load_dataset
from ldprecover_experiments.parameters import PAPER_USERS
from ldprecover_experiments.poisoned_round import HASH_ONLY
from ldprecover_experiments.tables import Table

SPECS = tomllib.loads(Path(__file__).with_name("reproduction.toml").read_text(encoding="utf-8"))


def theory(protocol: str, d: int, n: float) -> float:
    """Return the mean of Lemma 2's variances over d items, whose frequencies sum to one: no data
    needed. Of OLH without its randomised response, g = 3, it is that of (1 - f)/((g - 1) n).
    """
    if protocol == HASH_ONLY:
        return (1 - 1 / d) / (2 * n)
    oracle = frequency_oracle(protocol, 0.5, d)
    return float(oracle.variance(np.full(d, 1 / d), round(n)).mean())


def table1_before(means: Means) -> str:
    """Return Table I before recovery, beside theory for the paper's number of items and for
    ours.
    """
    lines = []
    for data, label, name, paper in SPECS["before"]["rows"]:
        dataset, n = SPECS["before"][data], PAPER_USERS[data] / 0.95
        expected = theory(name, dataset["items"], n)
        ours = means("poisoned", name, "honest", "input", data=data)
        ours_expected = theory(name, len(load_dataset(data).items), n)
        theirs = (shown(paper), shown(expected), f"{paper / expected:.2f}")
        own = (shown(ours), shown(ours_expected), f"{ours / ours_expected:.2f}")
        lines.append([dataset["name"], label, *theirs, *own])
    columns = ["data", "protocol", "paper", "theory", "paper/theory"]
    return Table([*columns, "ours", "our theory", "ours/theory"], lines).markdown()


def tables(means: Means) -> Iterator[str]:
    """Yield the tables in the page's order."""
    yield table1_before(means)
    after, *others = (means.table(**table) for table in SPECS["table"])
    yield from (after, numbers(means), findings(means), *others)
