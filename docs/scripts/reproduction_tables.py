"""The tables of docs/measurements/reproduction.md, from the means of a run.

Theory is computed from the formulas; the paper's numbers are beside its experiments.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from reproduction_findings import findings, numbers
from reproduction_means import ATTACKS, Means, shown

from ldprecover import frequency_oracle
from ldprecover_client import load_dataset
from ldprecover_experiments.figures import AXES
from ldprecover_experiments.paper import (
    EXPERIMENTS,
    PAPER_ITEMS,
    PAPER_NAMES,
    PAPER_TABLE,
    PROTOCOLS,
)
from ldprecover_experiments.parameters import PAPER_USERS
from ldprecover_experiments.poisoned_round import HASH_ONLY, variants
from ldprecover_experiments.tables import Table

METHODS = {
    "poisoned": "poisoned",
    "Norm-Sub": "norm-sub",
    "LDPRecover": "ldprecover",
    "Π((1+η)f̃)": "scaled",
    "LDPRecover\\*": "ldprecover-star",
    "same, exact": "ldprecover-star-exact",
    "Detection": "detection",
    "same, projected": "detection-projected",
    "oracle": "oracle",
}
VARIANTS = [
    (data, protocol, name, "OLH, no randomised response" if name == HASH_ONLY else name.upper())
    for data, protocol in PAPER_TABLE
    for name in variants(protocol)
]


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
    for data, protocol, name, label in VARIANTS:
        paper, n = PAPER_TABLE[data, protocol][0], PAPER_USERS[data] / 0.95
        expected = theory(name, PAPER_ITEMS[data], n)
        ours = means("poisoned", name, "honest", "input", data=data)
        ours_expected = theory(name, len(load_dataset(data).items), n)
        theirs = (shown(paper), shown(expected), f"{paper / expected:.2f}")
        own = (shown(ours), shown(ours_expected), f"{ours / ours_expected:.2f}")
        lines.append([PAPER_NAMES[data], label, *theirs, *own])
    columns = ["data", "protocol", "paper", "theory", "paper/theory"]
    return Table([*columns, "ours", "our theory", "ours/theory"], lines).markdown()


def tables(means: Means) -> Iterator[str]:
    """Yield the tables in the page's order."""
    yield table1_before(means)
    yield means.table(
        ("data", "protocol", "paper, after"),
        (
            (
                (data, label, shown(PAPER_TABLE[data, protocol][1])),
                {"data": data, "protocol": name, "attack": "none", "model": "none", "beta": 0.0},
            )
            for data, protocol, name, label in VARIANTS
        ),
        {
            "before": {"method": "poisoned"},
            "LDPRecover": {"method": "ldprecover"},
            "Norm-Sub": {"method": "norm-sub"},
            "1/d": {"method": "uniform"},
        },
    )
    yield numbers(means)
    yield findings(means)
    for number, data in product(("mse", "fg"), ("cities", "fire")):
        yield means.table(
            ("protocol", "attack"),
            (
                (
                    (protocol.upper(), attack if model == "one-hot" else f"{attack}, {model}"),
                    {"protocol": protocol, "attack": attack, "model": model},
                )
                for attack, model, protocols in ATTACKS
                for protocol in (protocols if number == "mse" or attack == "mga" else ())
            ),
            {
                label: {"method": method, "data": data, "number": number}
                for label, method in METHODS.items()
            },
        )
    yield malicious(means)
    for varied in ("beta", "epsilon", "eta"):
        yield sweep(means, varied)
    methods = ("poisoned", "norm-sub", "k-means-raw", "k-means", "ldprecover-km")
    labels = ("poisoned", "Norm-Sub", "k-means", "k-means, projected", "LDPRecover-KM")
    yield means.table(
        ("protocol", "ξ"),
        (
            (
                (protocol.upper(), f"{xi:g}"),
                {"protocol": protocol, "attack": "mga", "model": "input", "xi": xi},
            )
            for protocol, xi in product(PROTOCOLS, EXPERIMENTS["km"].values)
        ),
        {label: {"method": method} for label, method in zip(labels, methods, strict=True)},
    )


def malicious(means: Means) -> str:
    """Return the error of the assumed malicious frequencies under MGA, and of what is recovered
    with them.
    """
    methods = {
        "LDPRecover": "ldprecover",
        "LDPRecover\\*": "ldprecover-star",
        "LDPRecover\\*, exact": "ldprecover-star-exact",
    }
    columns: dict[str, dict[str, Any]] = {
        f"f̃_Y: {label}": {"method": method, "number": "malicious_mse"}
        for label, method in methods.items()
    }
    recovered = methods | {"Norm-Sub": "norm-sub"}
    columns |= {label: {"method": method} for label, method in recovered.items()}
    return means.table(
        ("protocol", "β"),
        (
            ((p.upper(), f"{beta:g}"), {"protocol": p, "attack": "mga", "beta": beta})
            for p, beta in product(PROTOCOLS, (0.001, 0.01, 0.05, 0.1, 0.2))
        ),
        columns,
    )


def sweep(means: Means, varied: str) -> str:
    """Return the errors of the recoveries over one parameter, cities."""
    labels = ["LDPRecover", "LDPRecover\\*", *([] if varied == "eta" else ["Norm-Sub"])]
    return means.table(
        ("attack", "protocol", "method"),
        (
            (
                (attack, protocol.upper(), label),
                {"attack": attack, "protocol": protocol, "method": METHODS[label]},
            )
            for attack, protocol, label in product(("aa-peaked", "aa-diffuse"), PROTOCOLS, labels)
        ),
        {
            f"{AXES[varied]} = {value:g}": {varied: value}
            for value in EXPERIMENTS[f"sweep-{varied}"].values
        },
    )
