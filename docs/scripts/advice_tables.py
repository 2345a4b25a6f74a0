"""What pages advise, measured on several data sets and epsilon from 0.2 to 4: the tables of
docs/measurements/evaluation.md.

A sentence that holds on one city at one epsilon is no advice. Ratios are of means over the trials,
then geometric means over settings; the least and the greatest say where advice fails.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from measured_rounds import TABLES

from ldprecover import RecoveryRequest, frequency_oracle
from ldprecover.estimation.metrics import mse
from ldprecover_attacker import MGA
from ldprecover_experiments import Outcome, Results, Study
from ldprecover_experiments.attacks import TARGETS, AttackSpec
from ldprecover_experiments.paper import PROTOCOLS
from ldprecover_experiments.parameters import Cell, GenuineUsers, load_users_by_data
from ldprecover_experiments.poisoned_round import simulate_round
from ldprecover_experiments.scores import Ratios
from ldprecover_experiments.tables import Table

NEAR = 1.05
"""Ratios of means of few trials that are nearer to one than this say nothing."""


def study(name: str, **changes: Any) -> Results:
    """Return the results of a study of `tables.toml`, some of its keys changed, and the error of
    the answer 1/d.
    """
    cells = {}
    keys = TABLES["advice"][name] | changes
    for part in keys.pop("parts"):
        each = Study.of(keys | part)
        for cell, outcomes in each.run().cells.items():
            truth = each.users_by_data[cell.data].frequencies
            error = mse(np.full_like(truth, 1 / truth.size), truth)
            cells[cell] = [*outcomes, Outcome("uniform", error, None, None, 0.0)]
    return Results(name, cells)


def ratios(results: Results, method: str, where: Callable[[Cell], bool]) -> Ratios[Cell]:
    """Return projection's error over a method's by setting, where the method has one."""
    pairs = {
        cell: (means["norm-sub"].mse, means[method].mse)
        for cell, means in results.means.items()
        if where(cell) and method in means
    }
    return Ratios({cell: theirs / own for cell, (theirs, own) in pairs.items() if own > 0})


def against_projection(results: Results) -> Table:
    """Return each method's error under projection's: with nobody attacking, and under attacks."""
    lines = []
    _genuine, _poisoned, _projection, *names = results.methods
    for name in names:
        clean = ratios(results, name, lambda cell: cell.attack is None)
        attacked = ratios(results, name, lambda cell: cell.attack is not None)
        columns = [
            column
            for each in (clean, attacked)
            for column in (
                f"{each.mean:.2f}",
                f"{each[each.least]:.3g}",
                f"{each[each.greatest]:.3g}",
            )
        ]
        at = attacked.least
        where = f"{at.data}, {at.protocol.upper()}, ε = {at.epsilon:g}, {at.label}"
        lines.append([name, *columns, where, _better(results, name)])
    columns = ["method", "clean", "least", "most", "attacked", "least", "most"]
    return Table([*columns, "where least", "better in trials"], lines)


def _better(results: Results, method: str) -> str:
    errors = [{o.method: o.mse for o in outcomes} for outcomes in results.cells.values()]
    pairs = [(each["norm-sub"], each[method]) for each in errors if not np.isnan(each[method])]
    return f"{sum(own < projected for projected, own in pairs)} of {len(pairs)}"


def lost_to_uniform(results: Results) -> Table:
    """Return where the answer 1/d for every item has a lower error than projection, with nobody
    attacking.
    """
    lines = []
    for protocol in PROTOCOLS:
        each = ratios(
            results,
            "uniform",
            lambda c: c.protocol == protocol and c.attack is None,  # noqa: B023
        )
        lost = sorted((c.data, c.epsilon, ratio) for c, ratio in each.items() if ratio > 1)
        where = ", ".join(f"{name} ε = {epsilon:g} ({ratio:.1f})" for name, epsilon, ratio in lost)
        share, greatest = f"{len(lost)} of {len(each)}", f"{each[each.greatest]:.1f}"
        lines.append([protocol.upper(), share, greatest, where or "nowhere"])
    return Table(("protocol", "1/d is better in", "most", "where (projection / uniform)"), lines)


def naming(users_by_data: Mapping[str, GenuineUsers], keys: Mapping[str, Any]) -> Table:
    """Return what naming ten items costs: random ones with nobody attacking; all the targets of
    MGA, η = 0.2.
    """
    lines = []
    for (attacked, beta), protocol in product(TABLES["advice"]["naming"].items(), PROTOCOLS):
        attack, model = (AttackSpec("mga"), "sampled") if beta else (None, "none")
        each = Ratios(
            {
                (name, epsilon): _named(
                    users, Cell(name, protocol, attack, model, beta, epsilon), keys["trials"]
                )
                for (name, users), epsilon in product(users_by_data.items(), keys["epsilon"])
            }
        )
        name, epsilon = each.greatest
        numbers = (f"{ratio:.2f}" for ratio in (each.mean, each[each.least], each[each.greatest]))
        worse = f"{sum(ratio > NEAR for ratio in each.values())} of {len(each)}"
        lines.append([attacked, protocol.upper(), *numbers, f"{name}, ε = {epsilon:g}", worse])
    columns = ["named", "protocol", "LDPRecover* / projection", "least", "most"]
    return Table([*columns, "where most", "worse in"], lines)


def _named(users: GenuineUsers, cell: Cell, trials: int) -> float:
    """Return the error of LDPRecover* that is told the targets, or ten random items, over that of
    projection.
    """
    errors = np.zeros((trials, 2))
    for trial in range(trials):
        round_ = simulate_round(replace(cell, trial=trial), users, 1)
        items = np.random.default_rng([1, trial]).choice(len(users.items), TARGETS, replace=False)
        targets = round_.targets or tuple(sorted(items.tolist()))
        requests = RecoveryRequest("norm-sub"), RecoveryRequest("ldprecover", targets=targets)
        errors[trial] = [mse(round_.recover(each).recovered, round_.truth) for each in requests]
    projected, named = errors.mean(axis=0)
    return float(named / projected)


def gains(users_by_data: Mapping[str, GenuineUsers], keys: Mapping[str, Any]) -> Table:
    """Return the exact gains of crafted MGA on ten targets, β = 0.05, and GRR's over the greater of
    the others.
    """
    lines = []
    for (name, users), epsilon in product(users_by_data.items(), keys["epsilon"]):
        d = len(users.items)
        attack = MGA([round((i + 0.5) * d / TARGETS) for i in range(TARGETS)])
        each = [
            attack.gain(frequency_oracle(protocol, epsilon, d), users.frequencies, 0.05)
            for protocol in PROTOCOLS
        ]
        bound = TARGETS * (2 * np.exp(epsilon) + 1)
        numbers = [*(f"{g:+.2f}" for g in each), f"{each[0] / max(each[1:]):.2f}"]
        lines.append([name, str(d), f"{epsilon:g}", *numbers, f"{d / bound:.2f}"])
    columns = ["data", "d", "ε", *map(str.upper, PROTOCOLS)]
    return Table([*columns, "GRR / greater other", "d / r(2e^ε + 1)"], lines)


def readers(**changes: Any) -> Table:
    """Return how often methods that read reports are worse than projection, and better with three
    targets.
    """
    results = study("reports", **changes)
    lines = []
    _genuine, _poisoned, _projection, *names, _uniform = results.methods
    for name, protocol in product(names, PROTOCOLS[1:]):
        each = ratios(results, name, lambda cell: cell.protocol == protocol)  # noqa: B023
        worse = f"{sum(ratio < 1 / NEAR for ratio in each.values())} of {len(each)}"
        at = each.least
        where = f"{at.data}, ε = {at.epsilon:g}, β = {at.beta:g}, {at.label}"
        few = [r > NEAR for cell, r in each.items() if cell.attack and cell.attack.targets == 3]
        helps = f"{sum(few)} of {len(few)}"
        lines.append([name, protocol.upper(), worse, f"{each[at]:.2f}", where, helps])
    columns = ("method", "protocol", "worse than projection", "least", "where", "helps at r = 3")
    return Table(columns, lines)


def tables(**changes: Any) -> Iterator[Table]:
    """Yield the tables of what needs counts alone."""
    keys = TABLES["advice"]["counts"] | changes
    users_by_data = load_users_by_data(keys["data"], users=keys.get("users"))
    results = study("counts", **changes)
    yield against_projection(results)
    yield lost_to_uniform(results)
    yield naming(users_by_data, keys)
    yield gains(users_by_data, keys)
