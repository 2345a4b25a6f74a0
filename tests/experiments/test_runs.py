"""The cells of the evaluation: their seeds, what is simulated, and what the methods make of it."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldprecover import GRR, OLH, RecoveryRequest, Tally, frequency_oracle, project_simplex, recover
from ldprecover.estimation.metrics import mse
from ldprecover.protocols import PROTOCOLS
from ldprecover_client import Population
from ldprecover_experiments.simulation.poisoned_round import PoisonedRound
from ldprecover_experiments.studies.cell_file import CellFile
from ldprecover_experiments.studies.cells import (
    HASH_ONLY,
    Cell,
    GenuineUsers,
    RoundSimulation,
    load_genuine_users,
    simulate_round,
)
from ldprecover_experiments.studies.measures import Outcome, measure
from ldprecover_experiments.studies.paper import EXPERIMENTS, METHODS, cells_of, estimators
from ldprecover_experiments.studies.runs import Work, tasks_of
from ldprecover_experiments.studies.specs import AttackSpec

ALL = cells_of(EXPERIMENTS, ["cities"], 1)


@pytest.fixture(scope="module")
def genuine_users() -> GenuineUsers:
    return load_genuine_users("cities", users=20_000)


def test_stand_ins_have_the_papers_users_and_ranges() -> None:
    """beta 0 and .001 to .1, epsilon .1 to 1.6, eta .01 to .4 (paper, VI-D), xi within 0 to 1."""
    numbers = [load_genuine_users(name).n for name in ("cities", "fire", "emoji")]
    assert numbers == [389_894, 667_574, 218_477]
    ranges = {name: (min(e.values), max(e.values)) for name, e in EXPERIMENTS.items() if e.varied}
    assert ranges["sweep-beta"] == (0.0, 0.1)
    assert ranges["sweep-epsilon"] == (0.1, 1.6)
    assert ranges["sweep-eta"] == (0.01, 0.4)
    assert ranges["km"] == (0.1, 0.9)
    assert sorted(EXPERIMENTS["sweep-beta"].values)[1] == 0.001


def test_every_cell_is_in_exactly_one_task() -> None:
    cells = cells_of(EXPERIMENTS, ["cities", "fire"], 3)
    assert len(set(cells)) == len(cells) == 6 * len(ALL)
    assert [cell for task in tasks_of(cells) for cell in task] == cells
    assert {len(task) for task in tasks_of(cells)[:-1]} == {10}


def test_seed_depends_on_all_but_the_recovery(genuine_users: GenuineUsers) -> None:
    cell = Cell("cities", "oue", AttackSpec(name="aa", kind="peaked", model="one-hot"))
    changes: list[dict[str, Any]] = [
        *({"trial": 1}, {"protocol": "olh"}, {"beta": 0.1}, {"epsilon": 1.0}),
        {"attack": AttackSpec(name="manip", model="one-hot")},
        {"attack": AttackSpec(name="aa", kind="peaked", model="sampled")},
    ]
    seeds = {
        c.seed(genuine_users, seed).entropy
        for c in (cell, *(replace(cell, **change) for change in changes))
        for seed in (0, 1)
    }
    assert len(seeds) == 2 * (1 + len(changes))
    one, other = (
        simulate_round(c, genuine_users, 5) for c in (cell, replace(cell, eta=0.4, xi=0.0))
    )
    assert (one.genuine, one.malicious) == (other.genuine, other.malicious)


@pytest.mark.parametrize(
    "cell",
    [c for c in ALL if c.beta in (0.0, 0.05)],
    ids=lambda c: "-".join(map(str, c.columns.values())),
)
def test_every_kind_of_cell_has_finite_errors(genuine_users: GenuineUsers, cell: Cell) -> None:
    small = replace(cell, xi=0.5) if cell.xi else cell
    round_ = simulate_round(small, genuine_users, 0)
    assert (round_.genuine.n, round_.malicious.n) == (20_000, 1_053 if cell.beta else 0)
    outcomes = list(measure(round_, estimators(round_, small.xi)))
    assert {outcome.method for outcome in outcomes} <= METHODS.keys()
    assert all(np.isfinite(outcome.mse) and outcome.mse >= 0 for outcome in outcomes)
    assert all((outcome.fg is not None) == (cell.attack.name == "mga") for outcome in outcomes)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_round_without_malicious_users_has_genuine_estimates(protocol: str) -> None:
    """Drawn by its law and reported for, whatever the protocol's tallies are of; and a support that
    can be.
    """
    genuine_users = load_genuine_users("cities", users=500)
    reported = PoisonedRound.clean(
        frequency_oracle(protocol, 0.5, len(genuine_users.items)),
        Population(genuine_users.counts, genuine_users.n, seed=1),
    )
    for round_ in (
        simulate_round(Cell("cities", protocol, AttackSpec(name="none"), 0.0), genuine_users, 0),
        reported,
    ):
        assert round_.tally == round_.genuine
        assert round_.poisoned.frequencies.tolist() == round_.f_genuine.tolist()
        recovery = recover(
            round_.oracle,
            round_.f_genuine,
            RecoveryRequest("ldprecover", eta=0, malicious_model="custom", support=round_.support),
        )
        assert recovery.recovered == pytest.approx(project_simplex(round_.f_genuine))


def test_the_oracle_gives_the_projection_of_the_genuine_estimate(
    genuine_users: GenuineUsers,
) -> None:
    """Equation 1 turned round: subtracting the true malicious frequencies leaves f~_X~, whatever
    the attack.
    """
    for protocol in ("grr", "oue", "olh"):
        cell = Cell("cities", protocol, AttackSpec(name="mga", model="one-hot"))
        round_ = simulate_round(cell, genuine_users, 1)
        genuine = round_.oracle.estimate(round_.genuine.counts(round_.oracle), round_.genuine.n)
        errors = {outcome.method: outcome.mse for outcome in measure(round_, estimators(round_))}
        assert errors["oracle"] == pytest.approx(
            mse(project_simplex(genuine), round_.truth), rel=1e-9
        )


def test_detection_at_the_level_of_counts_is_detection_on_reports(
    genuine_users: GenuineUsers,
) -> None:
    """GRR: dropping the reports in T and counting the others, beside counting all and striking T
    out.
    """
    simulation = RoundSimulation(
        Cell("cities", "grr", AttackSpec(name="mga", model="one-hot")), genuine_users, 2
    )
    assert isinstance(simulation.oracle, GRR)
    genuine, malicious = simulation.genuine_reports(), simulation.malicious_reports()
    reports = np.concatenate([genuine, malicious])
    assert simulation.targets is not None
    untargeted = reports[~np.isin(reports, simulation.targets)]
    expected = simulation.oracle.estimate(
        simulation.oracle.support_counts(untargeted), len(untargeted)
    )
    tallies = Tally.of(simulation.oracle, genuine), Tally.of(simulation.oracle, malicious)
    round_ = PoisonedRound(
        simulation.oracle, genuine_users.frequencies, *tallies, simulation.targets
    )
    errors = {outcome.method: outcome.mse for outcome in measure(round_, estimators(round_))}
    assert errors["detection"] == pytest.approx(mse(expected, round_.truth), rel=1e-12)


def test_olh_without_randomised_response_has_only_hash_noise() -> None:
    """Var f~(v) = (1 - f)/((g - 1)n): over 40 rounds of 102 items the squared errors average to it.

    A squared normal error has variance 2 sigma^4, so that the average has a relative standard
    deviation of sqrt(2/4080) = 0.022. At 6.5 of them: by chance beyond once in 10^9 runs, and never
    again for this seed.
    """
    genuine_users = load_genuine_users("cities")
    cell = Cell("cities", HASH_ONLY, AttackSpec(name="none"), 0.0)
    oracle = simulate_round(cell, genuine_users, 0).oracle
    assert isinstance(oracle, OLH)
    errors = []
    for trial in range(40):
        outcomes = Work({"cities": genuine_users}, 0).run(replace(cell, trial=trial))
        errors += [outcome.mse for outcome in outcomes if outcome.method == "genuine"]
    expected = float(np.mean(1 - genuine_users.frequencies)) / (
        (oracle.hash_range - 1) * genuine_users.n
    )
    assert abs(np.mean(errors) / expected - 1) < 6.5 * np.sqrt(2 / 102 / 40)


def test_file_of_cells_keeps_outcomes(genuine_users: GenuineUsers, tmp_path: Path) -> None:
    work, file = Work({"cities": genuine_users}, 0), tmp_path / "cells.jsonl"
    cells = [Cell("cities", "oue", AttackSpec(name="none"), 0.0, trial=trial) for trial in (0, 1)]
    outcomes = [Outcome("norm-sub", 0.25), Outcome("fiad", 0.5, 1.0, None, 2.0, 0.5, 0.25, 1.0)]
    refused = Outcome("fiad", math.nan, refused="it needs more, and says so")
    CellFile(file).add(work, [(cells[0], outcomes), (cells[1], [refused])])
    written = CellFile(file)
    assert written.of(work, cells[0]) == outcomes
    (outcome,) = written.of(work, cells[1]) or []
    assert (math.isnan(outcome.mse), outcome.refused) == (True, refused.refused)
