"""A demo's round on a real server: its figures against theory, for every protocol and kind of
attack.
"""

import math
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldprecover import ParameterError, project_simplex
from ldprecover.recovery import METHODS
from ldprecover_client import DatasetError, Population, load_dataset
from ldprecover_experiments.simulation.comparison import ESTIMATES, Comparison
from ldprecover_experiments.simulation.demo import Demo, no_progress
from ldprecover_experiments.simulation.demo_settings import DemoSettings

PlayOn = Callable[..., Comparison]


@pytest.fixture
def play(server: Any) -> PlayOn:
    """Play a demo with these settings, small unless told otherwise."""

    def on_server(**settings: Any) -> Comparison:
        demo = Demo(DemoSettings(**{"users": 5000, "targets": 3, **settings}))
        name = f"demo-{uuid.uuid4().hex[:20]}"
        return demo.on(server.url, server.admin_key, no_progress, name=name)

    return on_server


@pytest.mark.parametrize("protocol", ["grr", "oue", "hr"])
def test_every_figure_matches_its_name(play: PlayOn, protocol: str) -> None:
    figures = play(protocol=protocol)
    oracle = Demo(figures.settings).parameters.oracle
    poisoned = figures.estimate("poisoned")
    assert np.array_equal(figures.true, Population.of(load_dataset("cities"), 5000, 0).frequencies)
    for name in ("projected", "recovered", "recovered_targets"):
        assert figures.estimate(name).min() >= 0
        assert figures.estimate(name).sum() == pytest.approx(1.0, abs=1e-9)
    assert figures.estimate("projected") == pytest.approx(project_simplex(poisoned), abs=1e-12)
    if (
        protocol == "grr"
    ):  # the sum of a GRR estimate is 1, so LDPRecover is the projection of (1 + eta) f~_Z
        assert poisoned.sum() == pytest.approx(1.0, abs=1e-9)
        assert figures.estimate("recovered") == pytest.approx(
            project_simplex(1.2 * poisoned), abs=1e-9
        )
    assert (figures.estimates["unmixed"] is None) == bool(METHODS["unmix"].unfit(oracle))
    projected, before = figures.mse["projected"], figures.mse["poisoned"]
    assert projected is not None
    assert before is not None
    assert projected < before
    # Every genuine estimate within 8 standard errors of the truth: 102 items pass with probability
    # 1 - 1.3e-13. An item that is off by 10.4 of them is missed once in 100.
    errors = oracle.standard_errors(figures.true, figures.settings.users)
    assert (np.abs(figures.estimate("genuine") - figures.true) < 8 * errors).all()


def test_without_an_attacker_poisoned_is_genuine(play: PlayOn) -> None:
    figures = play(beta=0.0)
    assert np.array_equal(figures.estimate("poisoned"), figures.estimate("genuine"))


@pytest.mark.parametrize("attack", ["manip", "aa", "mla", "rpa"])
def test_an_attack_without_targets_has_no_gain(play: PlayOn, attack: str) -> None:
    figures = play(attack=attack, protocol="grr", model="sampled", beta=0.2)
    assert (figures.targets, figures.fg, figures.mse["recovered_targets"]) == (None, None, None)
    written = figures.as_json()
    assert (written["targets"], written["fg"], written["settings"]["targets"]) == (None, None, None)
    assert written["settings"]["model"] == ("sampled" if attack in ("manip", "aa") else None)
    assert math.isfinite(written["mse"]["recovered"])


def test_the_seed_decides_everything(play: PlayOn) -> None:
    first, again, other = (play(seed=seed, protocol="grr").as_json() for seed in (5, 5, 6))
    assert first == again
    assert first["targets"] != other["targets"]
    assert first["mse"] != other["mse"]


def test_one_s_own_file_is_played_like_a_shipped_one(play: PlayOn, tmp_path: Path) -> None:
    file = tmp_path / "pets.csv"
    file.write_text("owner,pet\n" + "1,cat\n" * 5 + "2,dog\n" * 3 + "3,newt\n" + "4,\n")
    figures = play(dataset=str(file), column="pet", targets=1, protocol="oue")
    assert figures.items == ("cat", "dog", "newt")
    assert set(figures.estimates) == set(ESTIMATES)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"dataset": "nowhere.csv"}, DatasetError),
        ({"epsilon": 11.0}, ParameterError),
        ({"attack": "apa2", "protocol": "grr"}, ParameterError),
        ({"eta": 11.0}, ParameterError),
        ({"targets": 102}, ParameterError),
        ({"users": 0}, ParameterError),
    ],
    ids=str,
)
def test_rejects_invalid_settings_without_a_server(
    settings: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        Demo(DemoSettings(**settings))
