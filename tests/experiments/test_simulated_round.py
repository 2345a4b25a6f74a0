"""Simulated rounds by label, against the classes that they are made of."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import ldprecover
from ldprecover import ParameterError, RecoveryRequest, frequency_oracle
from ldprecover_attacker import MGA
from ldprecover_client import DatasetError, Population, load_dataset
from ldprecover_experiments import Demo, DemoSettings, PoisonedRound, SimulatedRound, simulate

COUNTS = {"cat": 600, "do$g": 300, "<i>newt": 100}


@pytest.fixture
def attacked() -> SimulatedRound:
    return simulate(COUNTS, "grr", seed=3).attack("mga", targets="<i>newt", beta=0.2)


def test_ldprecover_has_simulate() -> None:
    assert ldprecover.simulate is simulate
    with pytest.raises(AttributeError, match="'nonsense'"):
        ldprecover.nonsense  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("protocol", ["grr", "oue", "olh"])
def test_equals_the_classes_for_the_same_seed(protocol: str) -> None:
    cities = load_dataset("cities")
    oracle = frequency_oracle(protocol, 1.0, len(cities.items))
    rng = np.random.default_rng(np.random.SeedSequence(7, spawn_key=(2,)))
    clean = PoisonedRound.clean(oracle, Population.of(cities, 2000, 7))
    expected = clean.under(MGA([4, 30]), 105, rng, (4, 30))

    simulated = simulate("cities", protocol, users=2000, seed=7)
    attacked = simulated.attack("mga", targets=[load_dataset("cities").items[4], 30])
    assert expected.reports is not None
    assert attacked.round.reports is not None
    assert attacked.round.reports.tobytes() == expected.reports.tobytes()
    request = RecoveryRequest("ldprecover", eta=0.1, targets=[4, 30])
    recovered = attacked.recover("ldprecover", eta=0.1, targets=attacked.targets)
    assert recovered.recovery.recovered.tobytes() == expected.recover(request).recovered.tobytes()


def test_has_the_users_and_targets_of_a_demo_of_its_seed() -> None:
    demo = Demo(DemoSettings(protocol="oue", users=1000, targets=3, seed=5))
    simulated = simulate("cities", "oue", 0.5, users=1000, seed=5).attack("mga", targets=3)
    assert simulated.round.f_genuine.tolist() == demo.genuine_estimate().tolist()
    assert simulated.round.targets == demo.targets


def test_users_hold_exactly_the_counts_of_the_data() -> None:
    simulated = simulate(COUNTS, "grr")
    assert simulated.round.genuine.n == 1000
    assert simulated.round.truth.tolist() == [0.6, 0.3, 0.1]
    assert simulate(np.array(["a", "b", "a"]), "grr").items == ("a", "b")


def test_shows_parameters_and_labels(attacked: SimulatedRound) -> None:
    assert repr(attacked) == "SimulatedRound(grr, epsilon 1, 1,000 users, 250 malicious, 3 items)"
    assert attacked.targets == ("<i>newt",)
    recovered = attacked.recover("norm-sub")
    shares = recovered.frequencies
    assert list(shares) == list(COUNTS)
    assert list(shares.values()) == recovered.recovery.recovered.tolist()
    first = max(shares, key=lambda label: shares[label])
    assert repr(recovered).startswith(
        f"SimulatedRecovery(norm-sub, 3 items: {first} {100 * shares[first]:.2f} %; "
    )
    assert recovered.mse == np.mean((recovered.recovery.recovered - [0.6, 0.3, 0.1]) ** 2)


def test_frames_have_the_columns_of_the_commands_and_the_truth() -> None:
    collected = simulate("cities", users=2000)
    errors = collected.to_frame().standard_error
    assert errors.tolist() == collected.round.poisoned.standard_errors.tolist()
    frame = collected.recover("unmix", targets=[3]).to_frame()
    shares = ["true", "poisoned", "malicious", "genuine", "recovered"]
    assert [*frame] == [*shares, "target", "standard_deviation", "lower", "upper"]
    assert ((frame.lower <= frame.recovered) & (frame.recovered <= frame.upper)).all()
    assert frame.index[frame.target].tolist() == [collected.items[3]]
    assert frame.true.sum() == pytest.approx(1)


def test_tables_have_labels_and_are_escaped(attacked: SimulatedRound) -> None:
    html = attacked.recover("norm-sub")._repr_html_()
    assert "<th>true</th><th>poisoned</th><th>recovered by norm-sub</th>" in html
    assert "<td>&gt; &lt;i&gt;newt</td><td>10.00 %</td>" in html
    assert "<th>estimated</th>" in simulate(COUNTS, "grr")._repr_html_()


@pytest.mark.skipif(find_spec("matplotlib") is None, reason="needs matplotlib")
def test_a_plot_has_labels(attacked: SimulatedRound, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")
    from matplotlib import pyplot

    axes = attacked.recover("norm-sub").plot()
    try:
        labels = [label.get_text() for label in axes.get_xticklabels()]
        assert labels == ["cat", r"do\$g", "> <i>newt"]
        assert axes.get_figure() is pyplot.gcf()
        assert len(axes.patches) == 3 * 3
        again = attacked.plot(axes)
        assert again is axes
        assert len(axes.patches) == 3 * 3 + 2 * 3
    finally:
        pyplot.close("all")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda r: simulate("citis"), "no file citis, .*did you mean 'cities'?"),
        (lambda r: simulate(COUNTS, "OEU"), "not 'OEU'; did you mean 'oue'?"),
        (lambda r: simulate({"cat": 0.5, "dog": 0.5}), "counts must be integers"),
        (lambda r: simulate(COUNTS, "grr").attack("mga"), "mga needs targets"),
        (
            lambda r: simulate(COUNTS, "grr").attack("mga", targets=["newt"]),
            "no item is labelled 'newt'; did you mean '<i>newt'?",
        ),
        (lambda r: r.attack("mga", targets=1), "attacked already"),
    ],
)
def test_an_error_names_what_is_near(
    attacked: SimulatedRound, wrong: Callable[[SimulatedRound], Any], words: str
) -> None:
    with pytest.raises((ParameterError, DatasetError), match=words.replace("?", r"\?")):
        wrong(attacked)
