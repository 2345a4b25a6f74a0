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
        found = [m("poisoned", "grr", "mga", model, beta=beta) for beta in EXPERIMENTS["ipa"].values]
        return f"{number(min(found[1:]))} … {number(max(found[1:]))}"

    km = {xi: (m("k-means-raw", "grr", "mga", "input", xi=xi), m("ldprecover-km", "grr", "mga", "input", xi=xi),
               m("k-means", "grr", "mga", "input", xi=xi)) for xi in EXPERIMENTS["km"].values}  # fmt: skip
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
        f"peaked {adaptive('peaked', 'ldprecover')}, diffuse {adaptive('diffuse', 'ldprecover')}; with the true "
        f"malicious frequencies {adaptive('peaked', 'oracle')} and {adaptive('diffuse', 'oracle')}"
    )
    several = (
        f"diffuse {improvement('aa-diffuse-x5', 'ldprecover'):.1%}, peaked "
        f"{improvement('aa-peaked-x5', 'ldprecover'):.1%}, means over β = .01 to .25; Norm-Sub alone "
        f"{improvement('aa-diffuse-x5', 'norm-sub'):.1%} and {improvement('aa-peaked-x5', 'norm-sub'):.1%}"
    )
    poisoned = f"peaked {adaptive('peaked', 'poisoned')}, diffuse {adaptive('diffuse', 'poisoned')}"
    clusters = f"{over_raw:.1%}, mean over ξ; better than k-means projected by {over_projected:.1%}"
    rows = [
        ("AA on GRR, β = .05, poisoned (VI-D)", "8.78e-2", poisoned, "`sweep-eta`"),
        ("the same, LDPRecover with η = .4", "1.42e-4", adaptive_claim, "`sweep-eta`"),
        ("MGA on GRR, poisoned, over β (VII-B)", "6.07e-2 … 1.08", f"β = .05 to .25: {ends('one-hot')}", "`ipa`"),
        ("MGA-IPA on GRR, poisoned, over β", "5.16e-4 … 6.21e-4", f"β = .05 to .25: {ends('input')}", "`ipa`"),
        ("LDPRecover-KM better than k-means, GRR (VII-B)", "48.9%", clusters, "`km`"),
        ("five attackers on GRR, LDPRecover better than poisoned (VII-C)", "80.2%", several, "`multi`"),
    ]
    return table(("claim", "paper", "ours, cities", "rerun"), rows)


def findings(means: Means) -> str:
    """Return what the paper says in words, beside what the cells say."""
    cells = [
        (data, protocol, attack, model)
        for data in ("cities", "fire")
        for attack, model, protocols in ATTACKS
        for protocol in protocols
    ]
    mga = [cell for cell in cells if cell[2] == "mga"]
    grr = [cell for cell in cells if protocols.PROTOCOLS[cell[1]].traits.one_item]

    def of(method: str, cell: tuple[str, str, str, str], what: str = "mse") -> float:
        data, protocol, attack, model = cell
        return means(method, protocol, attack, model, data=data, number=what)

    def fewer(one: str, other: str, among: Sequence[tuple[str, str, str, str]]) -> str:
        return f"{sum(of(one, cell) < of(other, cell) for cell in among)} of {len(among)}"

    def gains(method: str) -> str:
        found = [of(method, cell, "fg") for cell in mga]
        return f"{gain(min(found))} to {gain(max(found))}"

    same = sum(of("ldprecover", cell) == of("scaled", cell) for cell in cells)
    same_grr = sum(of("ldprecover", cell) == of("scaled", cell) for cell in grr)
    clean = {
        (data, protocol): (
            means("poisoned", protocol, "none", "none", data=data, beta=0.0),
            means("ldprecover", protocol, "none", "none", data=data, beta=0.0),
        )
        for data in ("cities", "fire")
        for protocol in PROTOCOLS
    }
    better = ", ".join(f"{p.upper()} on {d}" for (d, p), (before, after) in clean.items() if after < before)
    worse = ", ".join(f"{p.upper()} on {d}" for (d, p), (before, after) in clean.items() if after >= before)
    etas = [
        [means(method, protocol, attack, eta=eta) for eta in EXPERIMENTS["sweep-eta"].values]
        for attack in ("aa-peaked", "aa-diffuse")
        for protocol in PROTOCOLS
        for method in ("ldprecover", "ldprecover-star")
    ]
    at_least = sum(errors.index(min(errors)) == 0 for errors in etas)
    near_true = sum(errors.index(min(errors)) == 1 for errors in etas)
    spread = [
        max(errors) / min(errors)
        for attack in ("aa-peaked", "aa-diffuse")
        for protocol in PROTOCOLS
        for errors in [
            [means("ldprecover-star", protocol, attack, epsilon=e) for e in EXPERIMENTS["sweep-epsilon"].values]
        ]
    ]
    detection = "; ".join(
        f"{data} {number(of('detection', cell))} raw, {number(of('detection-projected', cell))} projected (poisoned "
        f"{number(of('poisoned', cell))}, LDPRecover {number(of('ldprecover', cell))}, LDPRecover\\* "
        f"{number(of('ldprecover-star', cell))})"
        for data in ("cities", "fire")
        for cell in [(data, "grr", "mga", "one-hot")]
    )
    f = load_dataset("cities").frequencies
    point = float((1 - 2 * f.max() + (f**2).sum()) / f.size)
    worst = (
        f"AA diffuse at β = .025: poisoned {number(means('poisoned', 'oue', 'aa-diffuse', beta=0.025))}, LDPRecover "
        f"{number(means('ldprecover', 'oue', 'aa-diffuse', beta=0.025))}, Norm-Sub "
        f"{number(means('norm-sub', 'oue', 'aa-diffuse', beta=0.025))}; one city alone given the frequency "
        f"1: {number(point)}"
    )
    accurate = (
        f"lower MSE than poisoned in {fewer('ldprecover', 'poisoned', cells)} cells; lower than Norm-Sub in "
        f"{fewer('ldprecover', 'norm-sub', cells)}"
    )
    subtracts = (
        f"the MSE of Π((1+η)f̃), which subtracts none, is the same to four digits in {same} of {len(cells)} cells, "
        f"for GRR in {same_grr} of {len(grr)}"
    )
    best = f"of {len(etas)} rows the lowest MSE is at the least η, .01, in {at_least}, at .05 in {near_true}"
    stable = f"greatest over least MSE from ε = .1 to 1.6: {min(spread):.0f} to {max(spread):.0f} times"
    rows = [
        ("LDPRecover recovers accurate frequencies from all attacks", accurate, "`mse`"),
        ("it does so by subtracting malicious frequencies", subtracts, "`mse`"),
        (
            "LDPRecover\\* is better than LDPRecover against MGA",
            f"in {fewer('ldprecover-star', 'ldprecover', mga)} cells",
            "`mse`",
        ),
        ("LDPRecover brings FG almost to 0", f"FG {gains('ldprecover')}; Norm-Sub {gains('norm-sub')}", "`fg`"),
        ("LDPRecover\\* brings FG below 0", f"FG {gains('ldprecover-star')}", "`fg`"),
        ("both outperform Detection in all cases", detection, "`mse`"),
        ("unpoisoned, recovery helps GRR and hurts OUE and OLH", f"helps {better}; hurts {worse}", "`table1`"),
        ("η close to the truth (.053) is best", best, "`sweep-eta`"),
        ("LDPRecover\\* stays stable over ε", stable, "`sweep-epsilon`"),
        ("(not in the paper) OUE, one-hot reports", worst, "`sweep-beta`"),
    ]
    return table(("the paper says", "we measure", "rerun"), rows)
