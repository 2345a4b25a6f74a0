"""The paper's numbers and sentences, each beside what a run measures."""

from collections.abc import Sequence

import numpy as np
from reproduction_means import ATTACKS, Means, gain, number, table

from ldprecover import protocols
from ldprecover_client import load_dataset
from ldprecover_experiments.paper import EXPERIMENTS, PROTOCOLS


def numbers(means: Means) -> str:
    """Return the numbers of the paper's text beside ours."""
    m = means

    def ends(model: str) -> str:
        found = [
            m("poisoned", "grr", "mga", model, beta=beta) for beta in EXPERIMENTS["ipa"].values
        ]
        return f"{number(min(found[1:]))} … {number(max(found[1:]))}"

    km = {
        xi: (
            m("k-means-raw", "grr", "mga", "input", xi=xi),
            m("ldprecover-km", "grr", "mga", "input", xi=xi),
            m("k-means", "grr", "mga", "input", xi=xi),
        )
        for xi in EXPERIMENTS["km"].values
    }
    over_raw = np.mean([1 - b / a for a, b, _ in km.values()])
    over_projected = np.mean([1 - b / c for _, b, c in km.values()])

    def improvement(attack: str, method: str) -> float:
        each = [
            1 - m(method, "grr", attack, beta=beta) / m("poisoned", "grr", attack, beta=beta)
            for beta in EXPERIMENTS["multi"].values
        ]
        return float(np.mean(each))

    def adaptive(kind: str, method: str) -> str:
        return number(m(method, "grr", f"aa-{kind}", eta=0.4))

    adaptive_claim = (
        f"peaked {adaptive('peaked', 'ldprecover')}, diffuse {adaptive('diffuse', 'ldprecover')}; "
        "with the true "
        f"malicious frequencies {adaptive('peaked', 'oracle')} and {adaptive('diffuse', 'oracle')}"
    )
    several = (
        f"diffuse {improvement('aa-diffuse-x5', 'ldprecover'):.1%}, peaked "
        f"{improvement('aa-peaked-x5', 'ldprecover'):.1%}, means over β = .01 to .25; Norm-Sub "
        "alone "
        f"{improvement('aa-diffuse-x5', 'norm-sub'):.1%} and "
        f"{improvement('aa-peaked-x5', 'norm-sub'):.1%}"
    )
    poisoned = f"peaked {adaptive('peaked', 'poisoned')}, diffuse {adaptive('diffuse', 'poisoned')}"
    clusters = f"{over_raw:.1%}, mean over ξ; better than k-means projected by {over_projected:.1%}"
    rows = [
        ("AA on GRR, β = .05, poisoned (VI-D)", "8.78e-2", poisoned, "`sweep-eta`"),
        ("the same, LDPRecover with η = .4", "1.42e-4", adaptive_claim, "`sweep-eta`"),
        (
            "MGA on GRR, poisoned, over β (VII-B)",
            "6.07e-2 … 1.08",
            f"β = .05 to .25: {ends('one-hot')}",
            "`ipa`",
        ),
        (
            "MGA-IPA on GRR, poisoned, over β",
            "5.16e-4 … 6.21e-4",
            f"β = .05 to .25: {ends('input')}",
            "`ipa`",
        ),
        ("LDPRecover-KM better than k-means, GRR (VII-B)", "48.9%", clusters, "`km`"),
        (
            "five attackers on GRR, LDPRecover better than poisoned (VII-C)",
            "80.2%",
            several,
            "`multi`",
        ),
    ]
    return table(("claim", "paper", "ours, cities", "rerun"), rows)


def findings(means: Means) -> str:
    """Return what the paper says in words, beside what the cells say."""
    c = _Cells(means)
    accurate = (
        f"lower MSE than poisoned in {c.fewer('ldprecover', 'poisoned', c.all)} cells; lower than "
        "Norm-Sub in "
        f"{c.fewer('ldprecover', 'norm-sub', c.all)}"
    )
    star = f"in {c.fewer('ldprecover-star', 'ldprecover', c.mga)} cells"
    gains = f"FG {c.gains('ldprecover')}; Norm-Sub {c.gains('norm-sub')}"
    rows = [
        ("LDPRecover recovers accurate frequencies from all attacks", accurate, "`mse`"),
        ("it does so by subtracting malicious frequencies", _subtracted(c), "`mse`"),
        ("LDPRecover\\* is better than LDPRecover against MGA", star, "`mse`"),
        ("LDPRecover brings FG almost to 0", gains, "`fg`"),
        ("LDPRecover\\* brings FG below 0", f"FG {c.gains('ldprecover-star')}", "`fg`"),
        ("both outperform Detection in all cases", _detection(c), "`mse`"),
        ("unpoisoned, recovery helps GRR and hurts OUE and OLH", _unpoisoned(means), "`table1`"),
        ("η close to the truth (.053) is best", _best_eta(means), "`sweep-eta`"),
        ("LDPRecover\\* stays stable over ε", _over_epsilon(means), "`sweep-epsilon`"),
        ("(not in the paper) OUE, one-hot reports", _one_hot(means), "`sweep-beta`"),
    ]
    return table(("the paper says", "we measure", "rerun"), rows)


_Cell = tuple[str, str, str, str]
"""Data, protocol, attack and malicious model."""

_DATA = ("cities", "fire")


class _Cells:
    """The cells of the comparison, and what the methods reach in them."""

    def __init__(self, means: Means) -> None:
        self._means = means
        self.all: list[_Cell] = [
            (data, protocol, attack, model)
            for data in _DATA
            for attack, model, protocols in ATTACKS
            for protocol in protocols
        ]
        self.mga = [cell for cell in self.all if cell[2] == "mga"]

    def of(self, method: str, cell: _Cell, what: str = "mse") -> float:
        data, protocol, attack, model = cell
        return self._means(method, protocol, attack, model, data=data, number=what)

    def fewer(self, one: str, other: str, among: Sequence[_Cell]) -> str:
        return f"{sum(self.of(one, cell) < self.of(other, cell) for cell in among)} of {len(among)}"

    def gains(self, method: str) -> str:
        found = [self.of(method, cell, "fg") for cell in self.mga]
        return f"{gain(min(found))} to {gain(max(found))}"


def _subtracted(c: _Cells) -> str:
    grr = [cell for cell in c.all if protocols.PROTOCOLS[cell[1]].traits.one_item]
    same, same_grr = (
        sum(c.of("ldprecover", cell) == c.of("scaled", cell) for cell in cells)
        for cells in (c.all, grr)
    )
    return (
        f"the MSE of Π((1+η)f̃), which subtracts none, is the same to four digits in {same} of "
        f"{len(c.all)} cells, "
        f"for GRR in {same_grr} of {len(grr)}"
    )


def _detection(c: _Cells) -> str:
    def on(data: str) -> str:
        cell = (data, "grr", "mga", "one-hot")
        raw, projected, poisoned, recovered, star = (
            number(c.of(method, cell))
            for method in (
                "detection",
                "detection-projected",
                "poisoned",
                "ldprecover",
                "ldprecover-star",
            )
        )
        beside = f"poisoned {poisoned}, LDPRecover {recovered}, LDPRecover\\* {star}"
        return f"{data} {raw} raw, {projected} projected ({beside})"

    return "; ".join(map(on, _DATA))


def _unpoisoned(means: Means) -> str:
    better: list[str] = []
    worse: list[str] = []
    for data in _DATA:
        for protocol in PROTOCOLS:
            before, after = (
                means(method, protocol, "none", "none", data=data, beta=0.0)
                for method in ("poisoned", "ldprecover")
            )
            (better if after < before else worse).append(f"{protocol.upper()} on {data}")
    return f"helps {', '.join(better)}; hurts {', '.join(worse)}"


def _best_eta(means: Means) -> str:
    etas = [
        [means(method, protocol, attack, eta=eta) for eta in EXPERIMENTS["sweep-eta"].values]
        for attack in ("aa-peaked", "aa-diffuse")
        for protocol in PROTOCOLS
        for method in ("ldprecover", "ldprecover-star")
    ]
    at_least, near_true = (sum(errors.index(min(errors)) == i for errors in etas) for i in (0, 1))
    return (
        f"of {len(etas)} rows the lowest MSE is at the least η, .01, in {at_least}, at .05 in "
        f"{near_true}"
    )


def _over_epsilon(means: Means) -> str:
    spread = []
    for attack in ("aa-peaked", "aa-diffuse"):
        for protocol in PROTOCOLS:
            epsilons = EXPERIMENTS["sweep-epsilon"].values
            errors = [
                means("ldprecover-star", protocol, attack, epsilon=epsilon) for epsilon in epsilons
            ]
            spread.append(max(errors) / min(errors))
    return (
        f"greatest over least MSE from ε = .1 to 1.6: {min(spread):.0f} to {max(spread):.0f} times"
    )


def _one_hot(means: Means) -> str:
    poisoned, recovered, norm_sub = (
        number(means(method, "oue", "aa-diffuse", beta=0.025))
        for method in ("poisoned", "ldprecover", "norm-sub")
    )
    f = load_dataset("cities").frequencies
    point = float((1 - 2 * f.max() + (f**2).sum()) / f.size)
    return (
        f"AA diffuse at β = .025: poisoned {poisoned}, LDPRecover {recovered}, Norm-Sub "
        f"{norm_sub}; one city alone "
        f"given the frequency 1: {number(point)}"
    )
