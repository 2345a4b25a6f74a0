"""Cells: their seeds, what is simulated, what the methods make of it, and which are run."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldprecover import (
    GRR,
    OLH,
    ParameterError,
    Tally,
    project_simplex,
)
from ldprecover.estimation.metrics import mse
from ldprecover_experiments.simulation.poisoned_round import PoisonedRound
from ldprecover_experiments.studies import runs
from ldprecover_experiments.studies.cells import (
    HASH_ONLY,
    Cell,
    GenuineUsers,
    RoundSimulation,
    load_genuine_users,
    simulate_round,
)
from ldprecover_experiments.studies.evaluation import estimators
from ldprecover_experiments.studies.measures import MethodOutcome, measure
from ldprecover_experiments.studies.paper import METHODS, STUDIES, PaperStudy
from ldprecover_experiments.studies.rows import CellRow, RowFile
from ldprecover_experiments.studies.runs import run_cell
from ldprecover_experiments.studies.specs import AttackSpec
from ldprecover_experiments.studies.study import Study, run_studies


def paper_cells(name: str) -> list[Cell]:
    return PaperStudy.of({**STUDIES[name], "trials": 1}, data="cities").cells


@pytest.fixture(scope="module")
def genuine_users() -> GenuineUsers:
    return load_genuine_users("cities", users=20_000)


def test_stand_ins_have_the_papers_users() -> None:
    numbers = [load_genuine_users(name).n for name in ("cities", "fire", "emoji")]
    assert numbers == [389_894, 667_574, 218_477]


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
    [
        cell
        for cell in dict.fromkeys(cell for name in STUDIES for cell in paper_cells(name))
        if cell.beta in (0.0, 0.05) and cell.xi in (0.0, 0.5)
    ],
    ids=lambda c: "-".join(map(str, c.columns.values())),
)
def test_every_kind_of_cell_has_finite_errors(genuine_users: GenuineUsers, cell: Cell) -> None:
    round_ = simulate_round(cell, genuine_users, 0)
    assert (round_.genuine.n, round_.malicious.n) == (20_000, 1_053 if cell.beta else 0)
    outcomes = list(measure(round_, estimators(round_, cell.xi)))
    assert {outcome.method for outcome in outcomes} <= METHODS.keys()
    assert all(np.isfinite(outcome.mse) and outcome.mse >= 0 for outcome in outcomes)
    assert all((outcome.fg is not None) == (cell.attack.name == "mga") for outcome in outcomes)


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
    round_ = PoisonedRound(
        simulation.oracle,
        genuine_users.frequencies,
        Tally.of(simulation.oracle, genuine),
        Tally.of(simulation.oracle, malicious),
        targets=simulation.targets,
    )
    errors = {outcome.method: outcome.mse for outcome in measure(round_, estimators(round_))}
    assert errors["detection"] == pytest.approx(mse(expected, round_.truth), rel=1e-12)


def test_olh_without_randomised_response_has_only_hash_noise() -> None:
    """Var f~(v) = (1 - f)/((g - 1)n): over 40 rounds of 102 items the squared errors average to it.

    A squared normal error has variance 2 sigma^4, so that the average has a relative standard
    deviation of sqrt(2/4080) = 0.022. At 6.5 of them: by chance beyond once in 10^9 runs, and never
    again for this seed. It misses a factor below 1.14, and OLH's own noise is 31 times as large.
    """
    genuine_users = load_genuine_users("cities")
    cell = Cell("cities", HASH_ONLY, AttackSpec(name="none"), 0.0)
    oracle = simulate_round(cell, genuine_users, 0).oracle
    assert isinstance(oracle, OLH)
    errors = []
    for trial in range(40):
        genuine, *_ = run_cell(replace(cell, trial=trial), genuine_users, 0, ())
        errors.append(genuine.mse)
    expected = float(np.mean(1 - genuine_users.frequencies)) / (
        (oracle.hash_range - 1) * genuine_users.n
    )
    assert abs(np.mean(errors) / expected - 1) < 6.5 * np.sqrt(2 / 102 / 40)


def test_file_keeps_rows_but_for_a_torn_one(tmp_path: Path) -> None:
    file = tmp_path / "cells.jsonl"
    cell = Cell("cities", "oue", AttackSpec(name="none"), 0.0)
    outcomes = [
        MethodOutcome(method="norm-sub", mse=0.25),
        MethodOutcome(
            method="fiad", mse=0.5, fg=1.0, malicious_mse=None, seconds=2.0, coverage=0.5
        ),
    ]
    refused = [MethodOutcome(method="fiad", mse=math.nan, refused="it needs more, and says so")]
    first, second = (
        CellRow(cell=replace(cell, trial=trial), digest="ab", n=9, seed=0, methods="")
        for trial in (0, 1)
    )
    RowFile(file).add([replace(first, outcomes=outcomes), replace(second, outcomes=refused)])
    rows = RowFile(file).rows
    assert rows[first].outcomes == outcomes
    (outcome,) = rows[second].outcomes
    assert (math.isnan(outcome.mse), outcome.refused) == (True, refused[0].refused)
    complete = file.read_bytes()
    for lost in (1, 40):
        file.write_bytes(complete[:-lost])
        assert list(RowFile(file).rows) == [first]
        assert complete.startswith(file.read_bytes())
    file.write_bytes(b'{"a": 1}\ntorn')
    with pytest.raises(ParameterError, match="is not a file of cells"):
        RowFile(file)
    assert file.read_bytes() == b'{"a": 1}\ntorn'


def test_runs_only_cells_that_the_file_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cells of other trials, methods and counts are lacking; those of the paper's fg are in mse."""
    trials: list[int] = []

    def recorded(cell: Cell, *arguments: Any) -> list[MethodOutcome]:
        trials.append(cell.trial)
        return run_cell(cell, *arguments)

    monkeypatch.setattr(runs, "run_cell", recorded)

    def of(**keys: Any) -> Study:
        small = {"users": 500, "trials": 2, "protocols": "grr", "attacks": "mga"}
        return Study.of({"methods": "norm-sub", **small, **keys})

    def paper(name: str) -> Study:
        return PaperStudy.of({**STUDIES[name], "users": 500, "trials": 1}, data="cities")

    for studies, expected in (
        ([of()], [0, 1]),
        ([of(methods={"method": "norm-sub"})], []),
        ([of(trials=3)], [2]),
        ([of(methods={"method": "ldprecover", "name": "norm-sub", "eta": 0.3})], [0, 1]),
        ([of(data="fire"), of(users=600), of(seed=1)], 3 * [0, 1]),
        ([paper("fg"), paper("mse")], 15 * [0]),
    ):
        each = run_studies(studies, file=RowFile(tmp_path / "cells.jsonl"))
        assert trials == expected
        assert [len(results.cells) for results in each] == [len(study.cells) for study in studies]
        trials.clear()
