"""The heat map: each attack against each method, beside what the experiments themselves say."""

from dataclasses import replace
from statistics import geometric_mean
from typing import Any

import numpy as np
import pytest

from ldprecover.protocols import PROTOCOLS
from ldprecover_client import Dataset
from ldprecover_experiments.drill.heat_map import HeatMap, heat_map_columns, verdict
from ldprecover_experiments.drill.jobs import CancelledError, Job
from ldprecover_experiments.drill.words import sentence
from ldprecover_experiments.parameters import load_genuine_users
from ldprecover_experiments.runs import Work
from ldprecover_experiments.unmixing_evaluation import ATTACKS

FEW = Dataset("few", tuple("abcdefghijklm"), np.arange(1, 14) ** 2, "thirteen letters")
MAP = HeatMap(FEW, "grr", 1.0, 2000, 0.05, 3, 0.2, 1, 1, False)


def play(heat_map: HeatMap) -> dict[str, Any]:
    return heat_map.play(Job("map", heat_map.settings, heat_map.steps))


def test_a_cell_is_what_the_experiments_measure() -> None:
    heat_map = play(replace(MAP, trials=2))
    assert [row["attack"] for row in heat_map["rows"]] == [name for name, _ in MAP.cells()]
    genuine_users = load_genuine_users(FEW, users=2000)
    cells = dict(MAP.cells())
    for name in ("none", "Manip", "MGA", "IPA"):
        (row,) = (each for each in heat_map["rows"] if each["attack"] == name)
        outcomes = [
            {
                o.method: o.mse
                for o in Work({"few": genuine_users}, 1, MAP.methods).run(
                    replace(cells[name], trial=trial)
                )
            }
            for trial in (0, 1)
        ]
        for method, cell in row["cells"].items():
            mean = sum(outcome[method] for outcome in outcomes) / 2
            basis = sum(outcome["norm-sub"] for outcome in outcomes) / 2
            assert cell["mse"] == pytest.approx(mean)
            assert cell["times"] == pytest.approx(basis / mean)
        assert row["cells"]["norm-sub"]["times"] == pytest.approx(1.0)
        assert {"poisoned", "ldprecover", "ldprecover*", "unmix counts"} <= row["cells"].keys()


@pytest.mark.parametrize("protocol", list(PROTOCOLS))
def test_every_protocol_has_a_map(protocol: str) -> None:
    heat_map = play(replace(MAP, protocol=protocol, users=300))
    assert {row["attack"] for row in heat_map["rows"]} <= ATTACKS.keys()
    assert {"none", "Manip", "MGA"} <= {row["attack"] for row in heat_map["rows"]}
    for row in heat_map["rows"]:
        for cell in row["cells"].values():
            assert (cell["refused"] is not None) or (cell["mse"] is not None and cell["mse"] >= 0)


def test_map_has_methods_of_reports_if_it_makes_reports() -> None:
    counts = {spec.name for spec in MAP.methods}
    reports = {spec.name for spec in replace(MAP, reports=True).methods}
    assert counts < reports
    assert {"unmix", "detection-all", "fiad"} <= reports - counts
    heat_map = play(replace(MAP, reports=True, users=300))
    (row,) = (each for each in heat_map["rows"] if each["attack"] == "MGA")
    assert row["cells"]["unmix"]["mse"] is not None


def test_it_can_be_cancelled_between_attacks() -> None:
    run = Job("map", {}, MAP.steps)
    run.cancel()
    with pytest.raises(CancelledError):
        MAP.play(run)


def test_equal_methods_share_a_column() -> None:
    """Under grr the raw estimate sums to one, so that norm changes nothing."""
    columns = play(MAP)["columns"]
    (shared,) = (column for column in columns if "norm" in column["names"])
    assert shared == {**shared, "method": "poisoned", "names": ["no recovery", "norm"]}


def test_columns_are_in_the_order_of_their_means() -> None:
    heat_map = play(MAP)
    columns = heat_map["columns"]
    for column in columns:
        ratios = [row["cells"][column["method"]]["times"] for row in heat_map["rows"]]
        assert column["mean"] == pytest.approx(geometric_mean(ratios))
    means = [column["mean"] for column in columns]
    assert means == sorted(means, reverse=True)
    best = columns[0]["method"]
    worst = min(heat_map["rows"], key=lambda row: row["cells"][best]["times"])
    assert heat_map["headline"].startswith(f"{sentence(columns[0]['names'][0])} wins on average")
    assert heat_map["detail"].endswith(f"times: {worst['title']}.")


def test_unplayed_attack_does_not_hide_the_verdict() -> None:
    """LLH has no reports of APA2."""
    heat_map = play(replace(MAP, protocol="llh", users=300))
    (row,) = (row for row in heat_map["rows"] if row["attack"] == "APA2")
    assert row["cells"]["norm-sub"] == {
        "mse": None,
        "times": None,
        "refused": "llh lacks reports crafted by coins",
    }
    assert "wins on average" in heat_map["headline"]


def test_verdict_is_honest_where_nothing_helps() -> None:
    cells = {
        "norm-sub": {"mse": 1.0, "times": 1.0, "refused": None},
        "norm": {"mse": 2.0, "times": 0.5, "refused": None},
    }
    rows = [{"attack": "none", "title": "nobody attacks", "cells": cells}]
    columns = heat_map_columns(rows)
    assert [column["method"] for column in columns] == ["norm-sub", "norm"]
    assert verdict(rows, columns)["headline"].startswith("No recovery does better")


def test_its_settings_are_plain() -> None:
    settings = MAP.settings
    assert settings.pop("dataset") == "few"
    assert settings.pop("malicious_users") == 105
    assert vars(HeatMap(FEW, **settings)) == vars(MAP)
