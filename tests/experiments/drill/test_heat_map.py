"""The heat map: each attack against each method, beside what the experiments themselves say."""

from dataclasses import replace

import numpy as np
import pytest

from ldprecover.protocols import PROTOCOLS
from ldprecover_client import Dataset
from ldprecover_experiments.drill.heat_map import HeatMap
from ldprecover_experiments.drill.jobs import CancelledError, Job
from ldprecover_experiments.parameters import load_genuine_users
from ldprecover_experiments.runs import Work
from ldprecover_experiments.unmixing_evaluation import ATTACKS

FEW = Dataset("few", tuple("abcdefghijklm"), np.arange(1, 14) ** 2, "thirteen letters")
MAP = HeatMap(FEW, "grr", 1.0, 2000, 0.05, 3, 0.2, 1, 1, False)


def test_a_cell_is_what_the_experiments_measure(run: Job) -> None:
    heat_map = replace(MAP, trials=2).play(run)
    assert heat_map["basis"] == "norm-sub"
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
def test_every_protocol_has_a_map(run: Job, protocol: str) -> None:
    heat_map = replace(MAP, protocol=protocol, users=300).play(run)
    assert {row["attack"] for row in heat_map["rows"]} <= ATTACKS.keys()
    assert {"none", "Manip", "MGA"} <= {row["attack"] for row in heat_map["rows"]}
    assert run.as_json()["done"] == run.as_json()["total"] == len(heat_map["rows"])
    for row in heat_map["rows"]:
        for cell in row["cells"].values():
            assert (cell["refused"] is not None) or (cell["mse"] is not None and cell["mse"] >= 0)


def test_methods_that_read_reports_are_there_where_reports_are_made(run: Job) -> None:
    counts = {spec.name for spec in MAP.methods}
    reports = {spec.name for spec in replace(MAP, reports=True).methods}
    assert counts < reports
    assert {"unmix", "detection-all", "fiad"} <= reports - counts
    heat_map = replace(MAP, reports=True, users=300).play(run)
    (row,) = (each for each in heat_map["rows"] if each["attack"] == "MGA")
    assert row["cells"]["unmix"]["mse"] is not None


def test_it_can_be_cancelled_between_attacks(run: Job) -> None:
    run.cancel()
    with pytest.raises(CancelledError):
        MAP.play(run)


def test_its_settings_are_plain() -> None:
    settings = MAP.settings
    assert settings.pop("dataset") == "few"
    assert settings.pop("malicious_users") == 105
    assert vars(HeatMap(FEW, **settings)) == vars(MAP)
