"""The paper's numbers and sentences, each beside the means of a run."""

from itertools import product

import numpy as np
from reproduction_means import SETTINGS, Means, shown

from ldprecover import protocols
from ldprecover_client import load_dataset
from ldprecover_experiments.paper import EXPERIMENTS, PROTOCOLS
from ldprecover_experiments.tables import Table

ADAPTIVE = ("aa-peaked", "aa-diffuse")
MANY = ("aa-diffuse-x5", "aa-peaked-x5")
DATA = ("cities", "fire")


def numbers(means: Means) -> str:
    """Return the numbers of the paper's text beside ours."""

    def ends(model: str) -> str:
        betas = EXPERIMENTS["ipa"].values[1:]
        errors = [means("poisoned", "grr", "mga", model, beta=beta) for beta in betas]
        return f"β = .05 to .25: {shown(min(errors))} … {shown(max(errors))}"

    def improvement(attack: str, model: str, better: str, worse: str, varied: str) -> str:
        each = [
            means(better, "grr", attack, model, **{varied: value})
            / means(worse, "grr", attack, model, **{varied: value})
            for value in EXPERIMENTS["km" if varied == "xi" else "multi"].values
        ]
        return f"{1 - np.mean(each):.1%}"

    def adaptive(method: str) -> tuple[str, ...]:
        return tuple(shown(means(method, "grr", attack, eta=0.4)) for attack in ADAPTIVE)

    def several(method: str, attack: str) -> str:
        return improvement(attack, "one-hot", method, "poisoned", "beta")

    over_raw, over_projected = (
        improvement("mga", "input", "ldprecover-km", worse, "xi")
        for worse in ("k-means-raw", "k-means")
    )
    peaked, diffuse = adaptive("ldprecover")
    oracles = " and ".join(adaptive("oracle"))
    rows = [
        (
            "AA on GRR, β = .05, poisoned (VI-D)",
            "8.78e-2",
            "peaked {}, diffuse {}".format(*adaptive("poisoned")),
            "`sweep-eta`",
        ),
        (
            "the same, LDPRecover with η = .4",
            "1.42e-4",
            f"peaked {peaked}, diffuse {diffuse}; with the true malicious frequencies {oracles}",
            "`sweep-eta`",
        ),
        ("MGA on GRR, poisoned, over β (VII-B)", "6.07e-2 … 1.08", ends("one-hot"), "`ipa`"),
        ("MGA-IPA on GRR, poisoned, over β", "5.16e-4 … 6.21e-4", ends("input"), "`ipa`"),
        (
            "LDPRecover-KM better than k-means, GRR (VII-B)",
            "48.9%",
            f"{over_raw}, mean over ξ; better than k-means projected by {over_projected}",
            "`km`",
        ),
        (
            "five attackers on GRR, LDPRecover better than poisoned (VII-C)",
            "80.2%",
            "diffuse {}, peaked {}, means over β = .01 to .25; Norm-Sub alone {} and {}".format(
                *(several(*each) for each in product(("ldprecover", "norm-sub"), MANY))
            ),
            "`multi`",
        ),
    ]
    return Table(("claim", "paper", "ours, cities", "rerun"), rows).markdown()


def findings(means: Means) -> str:
    """Return the sentences of the paper, beside the cells of the comparison."""
    every = [
        {"data": data, "protocol": c.protocol, "attack": c.attack_text, "model": c.model}
        for data, c in product(DATA, SETTINGS)
    ]
    mga = [cell for cell in every if cell["attack"] == "mga"]
    grr = [cell for cell in every if protocols.PROTOCOLS[cell["protocol"]].traits.one_item]
    errors = {
        method: np.array([means(method, **cell) for cell in every])
        for method in ("poisoned", "norm-sub", "ldprecover", "scaled", "ldprecover-star")
    }

    def fewer(one: str, other: str) -> str:
        return f"{(errors[one] < errors[other]).sum()} of {len(every)}"

    def gains(method: str) -> str:
        values = [means(method, number="fg", **cell) for cell in mga]
        return f"{shown(min(values), 'fg')} to {shown(max(values), 'fg')}"

    star = sum(means("ldprecover-star", **cell) < means("ldprecover", **cell) for cell in mga)
    same = errors["ldprecover"] == errors["scaled"]
    same_grr = sum(means("ldprecover", **cell) == means("scaled", **cell) for cell in grr)
    rows = [
        (
            "LDPRecover recovers accurate frequencies from all attacks",
            (
                f"lower MSE than poisoned in {fewer('ldprecover', 'poisoned')} cells; lower than "
                f"Norm-Sub in {fewer('ldprecover', 'norm-sub')}"
            ),
            "`mse`",
        ),
        (
            "it does so by subtracting malicious frequencies",
            (
                "the MSE of Π((1+η)f̃), which subtracts none, is the same to four digits in "
                f"{same.sum()} of {len(every)} cells, for GRR in {same_grr} of {len(grr)}"
            ),
            "`mse`",
        ),
        (
            "LDPRecover\\* is better than LDPRecover against MGA",
            f"in {star} of {len(mga)} cells",
            "`mse`",
        ),
        (
            "LDPRecover brings FG almost to 0",
            f"FG {gains('ldprecover')}; Norm-Sub {gains('norm-sub')}",
            "`fg`",
        ),
        ("LDPRecover\\* brings FG below 0", f"FG {gains('ldprecover-star')}", "`fg`"),
        ("both outperform Detection in all cases", _detection(means), "`mse`"),
        ("unpoisoned, recovery helps GRR and hurts OUE and OLH", _unpoisoned(means), "`table1`"),
        ("η close to the truth (.053) is best", _best_eta(means), "`sweep-eta`"),
        ("LDPRecover\\* stays stable over ε", _over_epsilon(means), "`sweep-epsilon`"),
        ("(not in the paper) OUE, one-hot reports", _one_hot(means), "`sweep-beta`"),
    ]
    return Table(("the paper says", "we measure", "rerun"), rows).markdown()


def _detection(means: Means) -> str:
    text = "{} {} raw, {} projected (poisoned {}, LDPRecover {}, LDPRecover\\* {})"
    methods = ("detection", "detection-projected", "poisoned", "ldprecover", "ldprecover-star")
    return "; ".join(
        text.format(data, *(shown(means(method, "grr", "mga", data=data)) for method in methods))
        for data in DATA
    )


def _unpoisoned(means: Means) -> str:
    cells: dict[bool, list[str]] = {True: [], False: []}
    for data, protocol in product(DATA, PROTOCOLS):
        before, after = (
            means(method, protocol, "none", "none", data=data, beta=0.0)
            for method in ("poisoned", "ldprecover")
        )
        cells[after < before].append(f"{protocol.upper()} on {data}")
    return f"helps {', '.join(cells[True])}; hurts {', '.join(cells[False])}"


def _best_eta(means: Means) -> str:
    best = [
        int(np.argmin([means(*row, eta=eta) for eta in EXPERIMENTS["sweep-eta"].values]))
        for row in product(("ldprecover", "ldprecover-star"), PROTOCOLS, ADAPTIVE)
    ]
    return (
        f"of {len(best)} rows the lowest MSE is at the smallest η, .01, in {best.count(0)}, at .05 "
        f"in {best.count(1)}"
    )


def _over_epsilon(means: Means) -> str:
    errors = np.array(
        [
            [
                means("ldprecover-star", protocol, attack, epsilon=epsilon)
                for epsilon in EXPERIMENTS["sweep-epsilon"].values
            ]
            for attack, protocol in product(ADAPTIVE, PROTOCOLS)
        ]
    )
    spread = errors.max(axis=1) / errors.min(axis=1)
    return (
        f"greatest over least MSE from ε = .1 to 1.6: {spread.min():.0f} to {spread.max():.0f} "
        "times"
    )


def _one_hot(means: Means) -> str:
    f = load_dataset("cities").frequencies
    point = float((1 - 2 * f.max() + (f**2).sum()) / f.size)
    poisoned, recovered, norm_sub = (
        shown(means(method, "oue", "aa-diffuse", beta=0.025))
        for method in ("poisoned", "ldprecover", "norm-sub")
    )
    return (
        f"AA diffuse at β = .025: poisoned {poisoned}, LDPRecover {recovered}, Norm-Sub "
        f"{norm_sub}; one city alone given the frequency 1: {shown(point)}"
    )
