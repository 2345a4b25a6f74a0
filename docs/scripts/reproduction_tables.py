"""Print the tables of docs/measurements/reproduction.md from the means of a run, and keep the means
they are made of.

    ldprecover reproduce all --out results
    python docs/scripts/reproduction_tables.py --keep results/summary.csv

Without --keep the kept means, docs/measurements/reproduction/summary.csv, are read. Theory is
computed from the formulas; the paper's numbers are beside its experiments.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from reproduction_findings import findings, numbers
from reproduction_means import ATTACKS, KEPT, Means, gain, number, table

from ldprecover import frequency_oracle
from ldprecover_client import load_dataset
from ldprecover_experiments.paper import (
    EXPERIMENTS,
    PAPER_ITEMS,
    PAPER_NAMES,
    PAPER_TABLE,
    PROTOCOLS,
)
from ldprecover_experiments.parameters import PAPER_USERS
from ldprecover_experiments.poisoned_round import variants


def theory(protocol: str, d: int, n: float) -> float:
    """Return the mean of Lemma 2's variances over d items, whose frequencies sum to one: no data
    needed.
    """
    oracle = frequency_oracle(protocol, 0.5, d)
    return float(oracle.variance(np.full(d, 1 / d), round(n)).mean())


def hash_only(d: int, n: float) -> float:
    """Return the mean variance (1 - f)/((g - 1) n) of OLH without its randomised response, g
    = 3.
    """
    return (1 - 1 / d) / (2 * n)


def table1_before(means: Means) -> str:
    """Return Table I before recovery, beside theory for the paper's number of items and for
    ours.
    """

    def rows() -> Iterator[Sequence[str]]:
        for (data, protocol), (paper, _) in PAPER_TABLE.items():
            n = PAPER_USERS[data] / 0.95
            ours_d = len(load_dataset(data).items)
            for name in variants(protocol):
                law = theory if name == protocol else None
                d = PAPER_ITEMS[data]
                theirs = law(protocol, d, n) if law else hash_only(d, n)
                expected = law(protocol, ours_d, n) if law else hash_only(ours_d, n)
                ours = means("poisoned", name, "honest", "input", data=data)
                label = protocol.upper() if law else "OLH, no randomised response"
                yield (
                    PAPER_NAMES[data],
                    label,
                    number(paper),
                    number(theirs),
                    f"{paper / theirs:.2f}",
                    number(ours),
                    number(expected),
                    f"{ours / expected:.2f}",
                )

    header = (
        "data",
        "protocol",
        "paper",
        "theory",
        "paper/theory",
        "ours",
        "our theory",
        "ours/theory",
    )
    return table(header, rows())


def table1_after(means: Means) -> str:
    """Return Table I after recovery, beside the projection alone and the vector 1/d."""

    def rows() -> Iterator[Sequence[str]]:
        for (data, protocol), (_, paper) in PAPER_TABLE.items():
            for name in variants(protocol):
                ours = (
                    means(method, name, "none", "none", data=data, beta=0.0)
                    for method in ("poisoned", "ldprecover", "norm-sub", "uniform")
                )
                label = protocol.upper() if name == protocol else "OLH, no randomised response"
                yield (data, label, number(paper), *map(number, ours))

    return table(
        ("data", "protocol", "paper, after", "before", "LDPRecover", "Norm-Sub", "1/d"), rows()
    )


def under_attack(means: Means, what: str, data: str) -> str:
    """Return MSE or FG of each method under each attack."""
    methods = [
        "poisoned",
        "norm-sub",
        "ldprecover",
        "scaled",
        "ldprecover-star",
        "ldprecover-star-exact",
    ]
    methods += ["detection", "detection-projected", "oracle"]
    header = ["poisoned", "Norm-Sub", "LDPRecover", "Π((1+η)f̃)", "LDPRecover\\*", "same, exact"]
    header += ["Detection", "same, projected", "oracle"]

    def rows() -> Iterator[Sequence[str]]:
        for attack, model, protocols in ATTACKS:
            for protocol in protocols if what == "mse" or attack == "mga" else ():
                found = (
                    means.get(method, protocol, attack, model, data=data, number=what)
                    for method in methods
                )
                label = attack if model == "one-hot" else f"{attack}, {model}"
                yield (protocol.upper(), label, *map(number if what == "mse" else gain, found))

    return table(("protocol", "attack", *header), rows())


def malicious(means: Means) -> str:
    """Return the error of the assumed malicious frequencies under MGA, and of what is recovered
    with them.
    """
    methods = ("ldprecover", "ldprecover-star", "ldprecover-star-exact")

    def rows() -> Iterator[Sequence[str]]:
        for protocol in PROTOCOLS:
            for beta in (0.001, 0.01, 0.05, 0.1, 0.2):
                assumed = [
                    means(method, protocol, "mga", beta=beta, number="malicious_mse")
                    for method in methods
                ]
                recovered = [
                    means(method, protocol, "mga", beta=beta) for method in (*methods, "norm-sub")
                ]
                yield (protocol.upper(), f"{beta:g}", *map(number, assumed + recovered))

    labels = ("LDPRecover", "LDPRecover\\*", "LDPRecover\\*, exact")
    return table(
        ("protocol", "β", *(f"f̃_Y: {label}" for label in labels), *labels, "Norm-Sub"), rows()
    )


def sweep(means: Means, varied: str) -> str:
    """Return the errors of the recoveries over one parameter, cities."""
    values = EXPERIMENTS[f"sweep-{varied}"].values
    methods = (
        ("ldprecover", "LDPRecover"),
        ("ldprecover-star", "LDPRecover\\*"),
        ("norm-sub", "Norm-Sub"),
    )

    def rows() -> Iterator[Sequence[str]]:
        for attack in ("aa-peaked", "aa-diffuse"):
            for protocol in PROTOCOLS:
                for method, label in methods:
                    if varied == "eta" and method == "norm-sub":
                        continue
                    found = [
                        means.get(method, protocol, attack, **{varied: value})  # type: ignore[arg-type]
                        for value in values
                    ]
                    yield (attack, protocol.upper(), label, *map(number, found))

    sign = {"beta": "β", "epsilon": "ε", "eta": "η"}[varied]
    return table(
        ("attack", "protocol", "method", *(f"{sign} = {value:g}" for value in values)), rows()
    )


def km(means: Means) -> str:
    """Return the errors of the subset defences under MGA-IPA."""
    methods = ("poisoned", "norm-sub", "k-means-raw", "k-means", "ldprecover-km")

    def rows() -> Iterator[Sequence[str]]:
        for protocol in PROTOCOLS:
            for xi in EXPERIMENTS["km"].values:
                found = (means(method, protocol, "mga", "input", xi=xi) for method in methods)
                yield (protocol.upper(), f"{xi:g}", *map(number, found))

    header = ("poisoned", "Norm-Sub", "k-means", "k-means, projected", "LDPRecover-KM")
    return table(("protocol", "ξ", *header), rows())


def tables(means: Means) -> Iterator[str]:
    """Yield the tables in the page's order."""
    yield table1_before(means)
    yield table1_after(means)
    yield numbers(means)
    yield findings(means)
    for data in ("cities", "fire"):
        yield under_attack(means, "mse", data)
    for data in ("cities", "fire"):
        yield under_attack(means, "fg", data)
    yield malicious(means)
    for varied in ("beta", "epsilon", "eta"):
        yield sweep(means, varied)
    yield km(means)


def main() -> None:
    """Print the tables; with --keep from a run, whose means are then kept."""
    parser = argparse.ArgumentParser(
        description="Print the tables of docs/measurements/reproduction.md."
    )
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="FILE",
        help="summary.csv of a run of `ldprecover reproduce all`",
    )
    keep = parser.parse_args().keep
    means = Means(keep or KEPT)
    sys.stdout.write("\n\n".join(tables(means)) + "\n")
    if keep is not None:
        means.keep(KEPT)


if __name__ == "__main__":
    main()
