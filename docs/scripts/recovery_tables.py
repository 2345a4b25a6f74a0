"""What recovery makes of attacks, and every method of a few attacks: the tables of
docs/measurements/recovery.md and docs/explanation/recovery.md.

Genuine users perturb, malicious users make the reports that would travel, both are counted, and
every method recovers from the same poisoned frequencies. MSE is measured against the true
frequencies f_X; FG, in brackets, against the estimate f~_X~ from the genuine reports alone. A cell
is the mean over the trials; each trial draws new reports, targets and secrets of the attacker.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np
from measured_rounds import (
    TABLES,
    Outcomes,
    Rounds,
    Trial,
    by_method,
    by_protocol,
    cells_of,
    is_targeted,
    mean_error,
    measured,
    rows,
)

from ldprecover import RecoveryRequest, frequency_oracle, project_simplex
from ldprecover.protocols import PROTOCOLS
from ldprecover.recovery import DEFAULT_ETA, METHODS
from ldprecover_experiments import MethodSpec, PoisonedRound
from ldprecover_experiments.measures import POISONED, Estimator, Reference, known_targets
from ldprecover_experiments.parameters import EPSILON
from ldprecover_experiments.poisoned_round import Targets, Vector
from ldprecover_experiments.tables import Table

RECOVERED = [MethodSpec(**fields) for fields in TABLES["methods"]["recovery"]]
PROJECTED, BLIND, WITH_TARGETS, _EXACT = RECOVERED
COLUMNS: tuple[Estimator, ...] = (POISONED, *RECOVERED)


def naming(name: str, targets: Callable[[Trial], Targets]) -> Reference:
    """Return LDPRecover* with these targets."""

    def recovered(t: PoisonedRound, eta: float) -> Vector:
        assert isinstance(t, Trial)
        return t.recover(RecoveryRequest("ldprecover", eta=eta, targets=targets(t))).recovered

    return Reference(name, recovered)


def without_targets(t: PoisonedRound, eta: float) -> Vector:
    """Return zero for the targets and the projection of the others: no model of the attack."""
    others = np.delete(np.arange(t.truth.size), known_targets(t))
    result = np.zeros_like(t.truth)
    result[others] = project_simplex(t.poisoned.frequencies[others])
    return result


NAMED = (
    naming("no item (LDPRecover)", lambda t: ()),
    naming("all targets", known_targets),
    naming("half of them", lambda t: known_targets(t)[: len(t.others) // 2]),
    naming("all targets, and as many others", lambda t: known_targets(t) + t.others),
    naming("others only, as many", lambda t: t.others),
    naming("what rose since an earlier round", lambda t: t.suspected),
    Reference("all targets, and no model: they at zero, the rest projected", without_targets),
)
CRAFTED, SAMPLED = "MGA, crafted", "MGA, sampled"
BETAS = (0.01, 0.02, 0.03, 0.04, 0.05)


def tables(of_recovery: Rounds, of_methods: Rounds) -> Iterator[str]:
    """Yield all tables, and the sentences on them."""
    yield from recovery_tables(of_recovery)
    attacks = rows("methods")
    by_protocol = dict(zip(attacks, methods_tables(of_methods, attacks), strict=True))
    yield from by_protocol.values()
    yield choices(by_protocol)


def recovery_tables(rounds: Rounds) -> Iterator[str]:
    """Yield the tables of recovery in Markdown, and the sentences on them."""
    played = {
        protocol: rounds.play(protocol, attacks, counts=True)
        for protocol, attacks in rows("recovery").items()
    }
    outcomes = {
        (protocol, attack): measured(trials, COLUMNS)
        for protocol, attacked in played.items()
        for attack, trials in attacked.items()
    }
    for protocol, attacked in played.items():
        lines = [
            [attack, f"{np.mean([t.poisoned.sum for t in trials]):.2f}"]
            + [mean_error(each, 2) for each in outcomes[protocol, attack].values()]
            for attack, trials in attacked.items()
        ]
        head = [protocol.upper(), "sum", *(method.name for method in COLUMNS)]
        yield Table(head, lines).markdown()
    every = [t for attacked in played.values() for trials in attacked.values() for t in trials]
    yield _facts(every, list(outcomes.values()))

    etas = (0.01, rounds.malicious / rounds.users, DEFAULT_ETA, 0.4, 1.0)
    lines = []
    for protocol, attacked in played.items():
        for attack in (SAMPLED, CRAFTED):
            by_eta = [measured(attacked.get(attack, ()), RECOVERED[1:], eta) for eta in etas]
            lines += [
                [f"{protocol.upper()}, {attack}", method.name]
                + [mean_error(each[method.name], 2) for each in by_eta]
                for method in RECOVERED[1:]
                if attack in attacked
            ]
    yield Table(["η", "", *(f"{eta:.2g}" for eta in etas)], lines).markdown()

    columns = {f"{p.upper()}, {CRAFTED}": measured(played[p][CRAFTED], NAMED) for p in PROTOCOLS}
    yield by_method("named as targets", columns, 2)
    lines = [
        [attack, *(_suspects(attacked.get(attack, [])) for attacked in played.values())]
        for attack in filter(is_targeted, played["oue"])
    ]
    yield Table(["rose since an earlier round", *map(str.upper, PROTOCOLS)], lines).markdown()

    columns = {
        f"β = {beta:g}": measured(
            replace(rounds, beta=beta).play("oue", [SAMPLED], counts=True)[SAMPLED], COLUMNS
        )
        for beta in BETAS
    }
    yield by_method(f"OUE, {SAMPLED}", columns, 2)


def _facts(trials: list[Trial], outcomes: list[Outcomes]) -> str:
    errors = {
        method.name: np.array([[o.mse for o in each[method.name]] for each in outcomes])
        for method in COLUMNS
    }
    every = np.concatenate(list(errors.values()))
    spread = every.std(axis=1) / np.sqrt(max(every.shape[1] - 1, 1)) / every.mean(axis=1)
    better = (errors[BLIND.name] < errors[PROJECTED.name]).sum()
    zeroed = sum(
        not WITH_TARGETS.estimate(t, DEFAULT_ETA).frequencies[list(known_targets(t))].any()
        for t in trials
    )
    return (
        f"LDPRecover had a lower MSE than projection alone in {better} of these {len(trials)} "
        f"trials. LDPRecover*, paper, set every item it was told to zero in {zeroed} of "
        f"{len(trials)}. The standard error of a mean MSE is {np.median(spread):.0%} of it in the "
        f"median, {spread.max():.0%} at most."
    )


def _suspects(trials: list[Trial]) -> str:
    if not trials:
        return ""
    hits = np.mean([len({*t.suspected} & {*known_targets(t)}) for t in trials])
    return f"{hits:.1f} targets, {np.mean([len(t.suspected) for t in trials]) - hits:.1f} others"


def methods_tables(rounds: Rounds, protocols: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield a table of every method for each of these protocols and its attacks."""
    compared = TABLES["compared"]
    for protocol, attacks in protocols.items():
        oracle = frequency_oracle(protocol, EPSILON, 102)
        specs = [
            spec
            for name, method in METHODS.items()
            if name not in compared["left_out"] and method.unfit(oracle) is None
            for spec in (
                MethodSpec(f"`{name}`", name),
                *(MethodSpec(**fields) for fields in compared["beside"].get(name, ())),
            )
        ]
        played = rounds.play(protocol, attacks)
        columns = {a: measured(trials, [POISONED, *specs]) for a, trials in played.items()}
        yield by_method(protocol.upper(), columns, 1)


def choices(tables: Mapping[str, str]) -> str:
    """Return the table of which method to ask for, from the methods' tables of all protocols.

    A cell is the MSE of projection over the method's, under the attack and, in brackets, without
    any.
    """

    def better(protocol: str, method: str, attack: str) -> str:
        cells = cells_of(tables[protocol])
        under, clean = (
            float(cells["`norm-sub`"][column].split()[0]) / float(cells[method][column].split()[0])
            for column in (attack, "none")
        )
        return f"{method}: {under:.2g} ({clean:.2g})"

    lines = []
    for choice in TABLES["choices"]:
        methods = by_protocol(choice)
        attack = choice["attack"]
        cells = (better(p, methods[p], attack) if p in methods else "" for p in PROTOCOLS)
        lines.append([choice["known"], attack, *cells])
    head = ["known", "if this is the attack", *map(str.upper, PROTOCOLS)]
    return Table(head, lines).markdown()
