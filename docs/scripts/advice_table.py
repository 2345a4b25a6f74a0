"""Measure the sentences of advice on five worlds and epsilon from 0.2 to 4, and print them as
tables.

    python docs/scripts/advice_table.py               counts alone, some minutes python
    docs/scripts/advice_table.py --reports     what reads reports too: Diffstats and FIAD, some
    minutes more

A sentence that holds on one city at one epsilon is no advice. A world is as in
docs/measurements/evaluation.md. Ratios are of means over the trials, then geometric means over
settings; the least and the most say where advice fails.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from ldprecover import RecoveryRequest, frequency_oracle, recover
from ldprecover.estimation.metrics import mse
from ldprecover.recovery import METHODS
from ldprecover_attacker import MGA
from ldprecover_experiments import MethodSpec
from ldprecover_experiments.attacks import TARGETS, parse
from ldprecover_experiments.measures import Outcome
from ldprecover_experiments.paper import PROTOCOLS
from ldprecover_experiments.parameters import Cell, GenuineUsers, load_users_by_data
from ldprecover_experiments.poisoned_round import simulate_round
from ldprecover_experiments.runs import Work, run_cells
from ldprecover_experiments.tables import Mean, Table, summarise

WORLDS = ("geometric", "zipf", "bump", "cities", "emoji")
EPSILONS = (0.2, 0.5, 1.0, 2.0, 4.0)
BETAS = (0.01, 0.05)
TRIALS = 3
NEAR = 1.05
"""Ratios of means of few trials that are nearer to one than this say nothing."""

COUNTED = [
    MethodSpec("norm-sub", "norm-sub"),
    MethodSpec("LDPRecover"),
    MethodSpec("LDPRecover, true η", eta="true"),
    MethodSpec("LDPRecover*, all targets", targets=True),
    MethodSpec("LDPRecover*, true η", targets=True, eta="true"),
    *(
        MethodSpec(name, name)
        for name in ("normalization", "norm", "norm-mul", "norm-cut", "base-cut", "rsn", "mle")
    ),
    *([MethodSpec("unmix, counts", "unmix", reads=False)] if "unmix" in METHODS else []),
]
ATTACKS = {
    "MGA": ("mga", "sampled"),
    "MGA, crafted": ('mga {"search": 100}', "crafted"),
    "AA diffuse": ("aa-diffuse", "sampled"),
    "Manip": ("manip", "sampled"),
    "IPA": ("mga", "input"),
}
READING = [
    MethodSpec("norm-sub", "norm-sub"),
    MethodSpec("diffstats", "diffstats"),
    *(MethodSpec(f"fiad, least = {least}", "fiad", options={"least": least}) for least in (3, 4)),
    *([MethodSpec("unmix", "unmix")] if "unmix" in METHODS else []),
]
CRAFTED = {
    "MGA, crafted": ('mga {"search": 100}', "crafted"),
    "MGA, crafted, r = 3": ('mga {"search": 100, "targets": 3}', "crafted"),
    "Manip, sampled": ("manip", "sampled"),
    "Manip, crafted": ("manip", "crafted"),
}

Summary = Mapping[Cell, Mapping[str, Mean]]
Played = Mapping[Cell, Sequence[Outcome]]


def cells(
    users_by_data: Mapping[str, GenuineUsers], attacks: Mapping[str, tuple[str, str]], trials: int
) -> list[Cell]:
    """Return every world, protocol and epsilon, without an attack and with each."""
    kinds = [
        ("none", "none", 0.0),
        *((text, model, beta) for (text, model), beta in product(attacks.values(), BETAS)),
    ]
    return [
        Cell(name, protocol, parse(text), model, beta, epsilon, trial=trial)
        for name, protocol, epsilon, (text, model, beta) in product(
            users_by_data, PROTOCOLS, EPSILONS, kinds
        )
        for trial in range(trials)
        if frequency_oracle(protocol, epsilon, 2).traits.one_item is False or model != "crafted"
    ]


def played(
    users_by_data: Mapping[str, GenuineUsers],
    asked: Sequence[Cell],
    specs: Sequence[MethodSpec],
    jobs: int,
) -> Played:
    """Return what every method makes of every cell."""
    found = dict(
        pair
        for some in run_cells(asked, Work(users_by_data, 0, specs, floors=True), jobs)
        for pair in some
    )
    return {cell: found[cell] for cell in asked}


def against_projection(results: Played) -> Table:
    """Return each method's error under projection's: with nobody attacking, and under attacks."""
    summary = summarise(results)
    names = [
        name
        for name in dict.fromkeys(n for means in summary.values() for n in means)
        if name not in _REFERENCES
    ]
    rows = [
        [name, *_ratios(summary, name, "none"), *_ratios(summary, name), _better(results, name)]
        for name in names
    ]
    columns = (
        "method",
        "clean",
        "least",
        "most",
        "attacked",
        "least",
        "most",
        "where least",
        "better in trials",
    )
    return Table(columns, rows)


_REFERENCES = (
    "genuine",
    "poisoned",
    "norm-sub",
    "genuine, projected",
    "floor, attack removed",
    "floor, counts",
)


def _ratios(summary: Summary, method: str, attack: str | None = None) -> list[str]:
    """Return the geometric mean, the least and the most of projection's error over a method's;
    where the least is.
    """
    found = [
        (means["norm-sub"].mse / means[method].mse, cell)
        for cell, means in summary.items()
        if (cell.attack is None) is (attack == "none") and method in means and means[method].mse > 0
    ]
    if not found:
        return [""] * (3 if attack else 4)
    ratios = np.array([ratio for ratio, _ in found])
    least, cell = min(found, key=lambda one: one[0])
    said = [f"{np.exp(np.log(ratios).mean()):.2f}", f"{least:.3g}", f"{ratios.max():.3g}"]
    return (
        said
        if attack
        else [*said, f"{cell.data}, {cell.protocol.upper()}, ε = {cell.epsilon:g}, {cell.label}"]
    )


def _better(results: Played, method: str) -> str:
    pairs = [
        (by["norm-sub"], by[method])
        for outcomes in results.values()
        if (by := {o.method: o.mse for o in outcomes}) and method in by and not np.isnan(by[method])
    ]
    return f"{sum(theirs < projected for projected, theirs in pairs)} of {len(pairs)}"


def naming(users_by_data: Mapping[str, GenuineUsers], trials: int) -> Table:
    """Return what naming ten items costs: random ones with nobody attacking; all the targets of
    MGA, η = 0.2.
    """
    rows = []
    for what, (attack, model, beta) in {
        "clean, ten random items": ("none", "none", 0.0),
        "MGA, all targets, β = 0.01": ("mga", "sampled", 0.01),
        "MGA, all targets, β = 0.05": ("mga", "sampled", 0.05),
    }.items():
        for protocol in PROTOCOLS:
            errors = {
                (name, epsilon): _named(
                    genuine_users, Cell(name, protocol, parse(attack), model, beta, epsilon), trials
                )
                for (name, genuine_users), epsilon in product(users_by_data.items(), EPSILONS)
            }
            ratios = {setting: told / projected for setting, (projected, told) in errors.items()}
            most = max(ratios, key=lambda setting: ratios[setting])
            mean = np.exp(np.mean(np.log(list(ratios.values()))))
            worse = sum(ratio > NEAR for ratio in ratios.values())
            rows.append(
                [
                    what,
                    protocol.upper(),
                    f"{mean:.2f}",
                    f"{min(ratios.values()):.2f}",
                    f"{ratios[most]:.2f}",
                    f"{most[0]}, ε = {most[1]:g}",
                    f"{worse} of {len(ratios)}",
                ]
            )
    return Table(
        (
            "named",
            "protocol",
            "LDPRecover* / projection",
            "least",
            "most",
            "where most",
            "worse in",
        ),
        rows,
    )


def _named(genuine_users: GenuineUsers, cell: Cell, trials: int) -> tuple[float, float]:
    """Return the mean errors of projection and of LDPRecover* that is told the targets, or ten
    random items.
    """
    errors = np.zeros((trials, 2))
    for trial in range(trials):
        round_ = simulate_round(replace(cell, trial=trial), genuine_users, 1)
        rng = np.random.default_rng([1, trial])
        told = round_.targets or tuple(
            sorted(rng.choice(len(genuine_users.items), TARGETS, replace=False).tolist())
        )
        for i, method in enumerate(("norm-sub", "ldprecover")):
            targets = told if method == "ldprecover" else ()
            found = recover(
                round_.oracle, round_.poisoned.frequencies, RecoveryRequest(method, targets=targets)
            )
            errors[trial, i] = mse(found.recovered, round_.truth)
    projected, named = errors.mean(axis=0)
    return float(projected), float(named)


def lost_to_uniform(summary: Summary) -> Table:
    """Return where the answer 1/d for every item has a lower error than projection, with nobody
    attacking.
    """
    rows = []
    for protocol in PROTOCOLS:
        ratios = {
            (cell.data, cell.epsilon): means["norm-sub"].mse / means["uniform"].mse
            for cell, means in summary.items()
            if cell.protocol == protocol and cell.attack is None
        }
        lost = {setting: ratio for setting, ratio in ratios.items() if ratio > 1}
        most = max(ratios, key=lambda setting: ratios[setting])
        where = ", ".join(
            f"{name} ε = {epsilon:g} ({ratio:.1f})"
            for (name, epsilon), ratio in sorted(lost.items())
        )
        rows.append(
            [
                protocol.upper(),
                f"{len(lost)} of {len(ratios)}",
                f"{ratios[most]:.1f}",
                where or "nowhere",
            ]
        )
    return Table(("protocol", "1/d is better in", "most", "where (projection / uniform)"), rows)


def gains(users_by_data: Mapping[str, GenuineUsers]) -> Table:
    """Return the exact gains of crafted MGA on ten targets, β = 0.05, and GRR's over the greater of
    the others.
    """
    rows = []
    for (name, genuine_users), epsilon in product(users_by_data.items(), EPSILONS):
        d = len(genuine_users.items)
        targets = [round((i + 0.5) * d / TARGETS) for i in range(TARGETS)]
        each = [
            MGA(targets).gain(
                frequency_oracle(protocol, epsilon, d), genuine_users.frequencies, 0.05
            )
            for protocol in PROTOCOLS
        ]
        bound = TARGETS * (2 * np.exp(epsilon) + 1)
        rows.append(
            [
                name,
                str(d),
                f"{epsilon:g}",
                *(f"{value:+.2f}" for value in each),
                f"{each[0] / max(each[1:]):.2f}",
                f"{d / bound:.2f}",
            ]
        )
    return Table(
        ("data", "d", "ε", *map(str.upper, PROTOCOLS), "GRR / greater other", "d / r(2e^ε + 1)"),
        rows,
    )


def readers(results: Played) -> Iterator[Table]:
    """Yield how often what reads reports is worse than projection, and what FIAD finds of three
    targets.
    """
    summary = summarise(results)
    rows = []
    for name in [spec.name for spec in READING if spec.name != "norm-sub"]:
        for protocol in PROTOCOLS[1:]:
            ratios = {
                cell: means["norm-sub"].mse / means[name].mse
                for cell, means in summary.items()
                if cell.protocol == protocol and not np.isnan(means[name].mse)
            }
            harmed = sum(ratio < 1 / NEAR for ratio in ratios.values())
            worst = min(ratios, key=lambda cell: ratios[cell])
            few = [ratio for cell, ratio in ratios.items() if '"targets": 3' in cell.attack_text]
            rows.append([
                name, protocol.upper(), f"{harmed} of {len(ratios)}", f"{ratios[worst]:.2f}",
                f"{worst.data}, ε = {worst.epsilon:g}, β = {worst.beta:g}, {worst.label}",
                f"{sum(ratio > NEAR for ratio in few)} of {len(few)}",
            ])  # fmt: skip
    yield Table(
        ("method", "protocol", "worse than projection", "least", "where", "helps at r = 3"), rows
    )


def tables(
    users_by_data: Mapping[str, GenuineUsers], trials: int, jobs: int, *, reports: bool
) -> Iterator[Table]:
    """Yield all tables."""
    counted = played(users_by_data, cells(users_by_data, ATTACKS, trials), COUNTED, jobs)
    yield against_projection(counted)
    yield lost_to_uniform(summarise(counted))
    yield naming(users_by_data, trials)
    yield gains(users_by_data)
    if reports:
        those = [
            cell for cell in cells(users_by_data, CRAFTED, trials) if cell.protocol != PROTOCOLS[0]
        ]
        yield from readers(played(users_by_data, those, READING, jobs))


def printed() -> Iterator[str]:
    """Yield the tables of docs/measurements/evaluation.md in Markdown."""
    return (
        table.markdown() for table in tables(load_users_by_data(WORLDS), TRIALS, 1, reports=False)
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", default=WORLDS)
    parser.add_argument("--users", type=int, help="of each world; by default its own number")
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--reports", action="store_true")
    asked = parser.parse_args()
    for table in tables(
        load_users_by_data(asked.data, users=asked.users),
        asked.trials,
        asked.jobs,
        reports=asked.reports,
    ):
        sys.stdout.write(f"{table.markdown()}\n\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
