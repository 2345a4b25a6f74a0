"""MGA's targets and options."""

from typing import Any

import numpy as np
import pytest
from tests.randomness import rng

from ldprecover import OLH, OUE, ParameterError
from ldprecover.estimation.simplex import project_simplex
from ldprecover.protocols import HR
from ldprecover.types import FloatArray
from ldprecover_attacker import APA, APA2, MGA, MGAA, RIA
from ldprecover_attacker.targeted import TargetedAttack

ITEMS = ["Lisbon", "Porto", "Braga", "5", "Faro"]


def test_targets_may_be_labels_or_indices_and_repeats_merge() -> None:
    targets: list[Any] = ["Faro", 1, np.int64(1), "Faro", "Porto"]
    attack = MGA(targets)
    assert attack.targets == ("Faro", 1, "Porto")
    assert attack.resolve(ITEMS).targets == (4, 1)


@pytest.mark.parametrize("targets", [[], (), [-1], [True], [1.0], [""], [None], "Faro"])
def test_rejects_invalid_targets(targets: object) -> None:
    with pytest.raises(ParameterError, match="target"):
        MGA(targets)  # type: ignore[arg-type]


@pytest.mark.parametrize("attack", [MGA, MGAA, APA, APA2, RIA])
def test_reports_need_targets_inside_the_domain(attack: type[TargetedAttack]) -> None:
    for targets, reason in (([0, 5], "from 0 to 4, not 5"), (["Faro"], "'Faro' is a label")):
        with pytest.raises(ParameterError, match=reason):
            attack(targets).reports(OLH(1.0, 5, 4), 10, rng())


def test_every_item_may_be_a_target() -> None:
    reports = MGA(range(5)).reports(OUE(1.0, 5), 3, rng())
    assert OUE(1.0, 5).supports(reports).all()


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("one-hot", "one-hot OLH report cannot travel"),
        ("Crafted", "model must be one of crafted, sampled"),
        (None, "model must be one of crafted, sampled"),
    ],
)
def test_rejects_another_model(model: Any, reason: str) -> None:
    with pytest.raises(ParameterError, match=reason):
        MGA([1], model=model)


def gain_after_projection(
    oracle: HR, support: FloatArray, frequencies: FloatArray, targets: list[int]
) -> float:
    """Return by how much a twentieth of malicious reports raises the targets after projection."""
    malicious = (support - oracle.q) / (oracle.p - oracle.q)
    projected = project_simplex(0.95 * frequencies + 0.05 * malicious)
    return float((projected - frequencies)[targets].sum())


@pytest.mark.parametrize("d", [20, 31, 102, 420])
@pytest.mark.parametrize("r", [1, 3, 10])
def test_columns_against_projection_gain_as_much_as_the_best_one(d: int, r: int) -> None:
    """At least .97 of what the best single column gains, for frequencies that it is chosen for."""
    oracle, generator = HR(0.5, d), rng()
    columns = oracle.supports(np.arange(1, oracle.summary_size, dtype=np.uint32)).astype(float)
    zipf = 1 / np.arange(1.0, d + 1)
    for frequencies in (np.full(d, 1 / d), zipf / zipf.sum()):
        targets = generator.choice(d, r, replace=False).tolist()
        gain, best = (
            max(gain_after_projection(oracle, each, frequencies, targets) for each in supports)
            for supports in ([MGA(targets, against="projected").support(oracle)], columns)
        )
        assert gain >= 0.97 * best


def test_columns_against_projection_are_drawn_evenly() -> None:
    oracle, attack = HR(0.5, 102), MGA(range(5, 102, 10), against="projected")
    counts = np.bincount(attack.reports(oracle, 20_000, rng()), minlength=128)
    assert np.count_nonzero(counts) >= 16
    # Seven standard deviations of a share of 20,000 reports; 9.4 are missed once in 100.
    shares = oracle.support_counts(np.flatnonzero(counts).astype("<u4")) / np.count_nonzero(counts)
    assert np.allclose(shares, attack.support(oracle))
    assert np.abs(counts[counts > 0] / 20_000 - 1 / np.count_nonzero(counts)).max() < 7 * 0.0018
