"""The evaluation of un-mixing: its cells, its scores, and what a small run of it gives."""

from collections import Counter
from dataclasses import replace
from math import exp, isnan, log

import numpy as np
import pytest

from ldprecover import ParameterError
from ldprecover_experiments import Results
from ldprecover_experiments.attacks import AttackSpec
from ldprecover_experiments.measures import Outcome
from ldprecover_experiments.parameters import Cell, GenuineUsers, load_users_by_data
from ldprecover_experiments.poisoned_round import RoundSimulation, simulate_round
from ldprecover_experiments.runs import Work
from ldprecover_experiments.scores import BETTER, FLOOR, Scores
from ldprecover_experiments.unmixing_evaluation import (
    DATA,
    DRIFT,
    PARTS,
    Only,
    Place,
    cells_of,
    cost,
    methods,
)


@pytest.fixture(scope="module")
def users_by_data() -> dict[str, GenuineUsers]:
    return load_users_by_data(DATA, users=2_000)


def test_number_of_cells_by_part(
    users_by_data: dict[str, GenuineUsers],
) -> None:
    places = cells_of(Only(), users_by_data, 2)
    settings = Counter((place.part, cell.data) for cell, place in places.items() if cell.trial == 0)
    # In the parts of beta without the unpoisoned cell of three protocols.
    for part, data, number in (
        ("base", DATA, 28),
        ("beta", DATA[:2], 25 * 4),
        ("epsilon", DATA[:2], 28 * 3),
    ):
        of_part = {name: n for (each, name), n in settings.items() if each == part}
        assert of_part == dict.fromkeys(data, number)
    assert {place.value for place in places.values() if place.part == "targets"} == set(
        PARTS["targets"].values
    )
    assert Counter(cell.trial for cell, place in places.items() if place.part == "base").keys() == {
        0,
        1,
    }
    assert {cell.trial for cell, place in places.items() if place.part == "beta"} == {0}
    differing = {cell.epsilon for cell, place in places.items() if place.part != "epsilon"}
    assert differing == {0.5}


def test_every_cell_can_be_simulated_with_its_targets(
    users_by_data: dict[str, GenuineUsers],
) -> None:
    part = Only(part=("base", "more", "targets"), protocol=("grr", "oue", "olh", "sue", "ss", "hr"))
    for cell, place in cells_of(part, {"bump": users_by_data["bump"]}, 1).items():
        simulation = RoundSimulation(cell, users_by_data["bump"], 0)
        if cell.attack:
            assert len(simulation.malicious_reports(3)) == 3
        if simulation.targets is not None:
            expected = 10 if place.value is None else place.value
            assert len(simulation.targets) == (
                2 * expected if place.attack.endswith("two") else expected
            )


def test_selects_parts_and_rejects_unknown_names(
    users_by_data: dict[str, GenuineUsers],
) -> None:
    one = Only(part=("base",), protocol=("oue",), attack=("MGA", "APA"))
    assert len(cells_of(one, {"zipf": users_by_data["zipf"]}, 3)) == 2 * 3
    assert [spec.name for spec in methods(("mle",))] == ["ldprecover", "norm-sub", "mle"]
    for key in ("part", "protocol", "attack", "method"):
        with pytest.raises(ParameterError, match=f"there is no {key} 'nothing'; there are"):
            Only(**{key: ("nothing",)})


def test_cost_counts_reports_if_a_method_reads_them(
    users_by_data: dict[str, GenuineUsers],
) -> None:
    few = Only(part=("base",), protocol=("grr",), attack=("none", "MGA"))
    cells = cells_of(few, {"zipf": users_by_data["zipf"]}, 1)
    counts, reports = (
        cost(cells, Work(users_by_data, 0, methods((name,))), 2) for name in ("norm-sub", "fiad")
    )
    assert counts.startswith("2 cells of 2 methods and 0 reports to make:")
    assert reports.startswith("2 cells of 3 methods and 4,105 reports to make:")
    assert reports.endswith("with 2 processes.")


def test_the_earlier_round_drifts_by_a_tenth() -> None:
    genuine_users = load_users_by_data(["geometric"])["geometric"]
    cell = Cell("geometric", "oue", AttackSpec("mga"), "sampled", epsilon=5.0)
    with_, without = (
        simulate_round(cell, genuine_users, 3, drift=DRIFT),
        simulate_round(cell, genuine_users, 3),
    )
    assert (
        with_.together.counts(with_.oracle).tolist()
        == without.together.counts(without.oracle).tolist()
    )
    assert without.earlier is None
    assert with_.earlier is not None
    then = with_.oracle.estimate(with_.earlier.counts(with_.oracle), with_.earlier.n)
    drift = np.log(then[:20] / genuine_users.frequencies[:20])
    # Twenty logarithms of sd 0.1 with little noise on top: their sd is outside 0.05 to 0.17 once in
    # 10^5 rounds.
    assert 0.05 < drift.std() < 0.17


def outcome(method: str, error: float, gain: float | None = None) -> Outcome:
    return Outcome(method, error, gain, None, 0.0, 0.9, 4 * error, 0.25)


def scored() -> Scores:
    """Two settings of two trials: the ratios of means are 3 and 12, those of single trials would be
    others.
    """
    cells, places = {}, {}
    errors = {"grr": ((2, 4), (1, 1)), "oue": ((4, 20), (1, 1))}
    for protocol, (theirs, ours) in errors.items():
        for trial in range(2):
            cell = Cell("zipf", protocol, AttackSpec("mga"), "sampled", trial=trial)
            places[cell] = Place("base", "MGA")
            cells[cell] = [
                outcome("ldprecover", theirs[trial], -0.5 if trial else 0.25),
                outcome("norm-sub", 5.0, 0.1),
                outcome("unmix", ours[trial], 0.0),
                outcome("floor, attack removed", 0.5),
                outcome("floor, counts", 0.25),
            ]
    return Scores(cells, places)


def test_score_is_the_geometric_mean_of_ratios_of_means() -> None:
    scores = scored()
    ratio = scores.ratio("ldprecover", "unmix")
    assert ratio.mean == pytest.approx(exp((log(3) + log(12)) / 2))
    assert (ratio[ratio.least], len(ratio), str(ratio)) == (3, 2, "6.00 (3.00)")
    assert scores.ratio(BETTER, "unmix").mean == pytest.approx(exp((log(3) + log(5)) / 2))
    assert scores.gain("ldprecover") == pytest.approx(0.125)  # |mean FG| of each setting
    assert not scores.ratio("ldprecover", "absent")
    assert isnan(scores.ratio("ldprecover", "absent").mean)


def test_bound_is_that_of_counts_if_reports_say_no_more() -> None:
    scores = scored()
    assert scores.where(lambda s: s.cell.protocol == "grr").ratio(
        "unmix", FLOOR
    ).mean == pytest.approx(1 / 0.25)
    assert scores.where(lambda s: s.cell.protocol == "oue").ratio(
        "unmix", FLOOR
    ).mean == pytest.approx(1 / 0.5)
    cells = {
        ("oue", "input"): False,
        ("olh", "sampled"): False,
        ("olh", "crafted"): True,
        ("grr", "crafted"): False,
    }
    for (protocol, model), removable in cells.items():
        cell = Cell("zipf", protocol, AttackSpec("mga"), model)
        assert replace(scores.settings[0], cell=cell).removable is removable


def test_tables_show_the_calibration_of_methods() -> None:
    tables = {table.title.split(":")[0]: table for table in scored().tables()}
    assert {"overall", "by protocol", "by attack", "by data"} <= tables.keys()
    rows = {tuple(row[:3]): row[3:] for row in tables["what a method says of itself"].rows}
    numbers = ["0.900", "0.900", "0.500", "0.500", "0.250", "0.250"]
    assert rows["unmix", "GRR", "MGA"] == numbers


def test_small_run_is_reproducible_and_respects_the_bounds() -> None:
    """Its numbers are pinned, to 1e-6, for what changes them changes every table of the page."""
    users_by_data = load_users_by_data(["geometric"], users=20_000)
    specs = methods(("mle", "ldprecover*"))
    work = Work(users_by_data, 0, specs, floors=True, drift=DRIFT)
    places = cells_of(Only(part=("base",), attack=("MGA", "IPA")), users_by_data, 1)
    results = Results("unmix", {cell: work.run(cell) for cell in places})
    errors = {(cell.protocol, place.attack): results.cells[cell] for cell, place in places.items()}
    pinned = {method: o.mse for method, o in ((o.method, o) for o in errors["oue", "MGA"])}
    assert pinned == pytest.approx(PINNED, rel=1e-6)
    for outcomes in errors.values():
        mse = {o.method: o.mse for o in outcomes}
        assert mse["floor, attack removed"] < 1.2 * mse["genuine, projected"]


PINNED = {
    "genuine": 0.0007506542,
    "poisoned": 0.02154866,
    "ldprecover": 0.0005120448,
    "ldprecover*": 0.0003502173,
    "norm-sub": 0.0004670621,
    "mle": 0.0004713408,
    "genuine, projected": 0.0002960877,
    "floor, attack removed": 0.0002211526,
    "floor, counts": 0.0003567158,
    "uniform": 0.0006200796,
}
