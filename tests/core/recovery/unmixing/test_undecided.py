"""The note of a round that does not decide between an attack and popular items."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from ldprecover import OUE, recover
from ldprecover.recovery.unmixing import unmix
from ldprecover.recovery.unmixing.evidence import Evidence
from ldprecover.types import Reports

ORACLE, N = OUE(1.0, 40), 20_000
LAW = np.append([0.12, 0.1, 0.09, 0.08, 0.07], np.full(35, 0.54 / 35))
UNMIX = "ldprecover.recovery.methods.unmix.unmix"


@cache
def reports(seed: int = 0) -> Reports:
    """Return reports of honest users."""
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(N, LAW)
    return ORACLE.perturb(np.repeat(np.arange(LAW.size), counts), rng)


def undecided() -> list[str]:
    """Return the notes on what would decide."""
    notes = recover(ORACLE, reports(), "unmix").notes
    return [note for note in notes if "perhaps framed" in note]


def test_possible_attack_is_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Evidence, "word", "possible")
    assert len(undecided()) == 1


@pytest.mark.parametrize(("probability", "noted"), [(0.6, True), (0.96, False)])
def test_suspects_of_middling_probability_are_undecided(
    monkeypatch: pytest.MonkeyPatch, probability: float, noted: bool
) -> None:
    monkeypatch.setattr(Evidence, "probability", 1.0)
    monkeypatch.setattr(
        UNMIX,
        lambda *a, **fields: replace(unmix(*a, **fields), spikes=np.eye(40)[3] * probability),
    )
    assert bool(undecided()) == noted
