"""The note of a round that does not decide between an attack and popular items."""

from dataclasses import replace

import numpy as np
import pytest
from tests.core.recovery.poisoned_round import play

from ldprecover import OUE, RecoveryRequest, Tally
from ldprecover.recovery.unmixing import unmix
from ldprecover.recovery.unmixing.evidence import Evidence
from ldprecover_attacker import Joint
from ldprecover_client import Population
from ldprecover_experiments.simulation.poisoned_round import PoisonedRound

UNMIX = "ldprecover.recovery.methods.unmix.unmix"
LAW = np.append([0.12, 0.1, 0.09, 0.08, 0.07], np.full(35, 0.54 / 35))


@pytest.mark.parametrize(
    ("word", "probability", "noted"),
    [("possible", 0.0, True), ("near_certain", 0.6, True), ("near_certain", 0.96, False)],
)
def test_possible_attack_and_middling_suspects_are_undecided(
    monkeypatch: pytest.MonkeyPatch, word: str, probability: float, noted: bool
) -> None:
    monkeypatch.setattr(Evidence, "word", word)
    monkeypatch.setattr(Evidence, "probability", 1.0)
    spikes = np.eye(40)[3] * probability
    monkeypatch.setattr(UNMIX, lambda *a, **fields: replace(unmix(*a, **fields), spikes=spikes))
    notes = play(OUE(1.0, 40), LAW, 20_000).unmixed()[0].notes
    assert any("perhaps framed" in note for note in notes) == noted


def test_framed_items_are_noted_as_a_set() -> None:
    round = play(OUE(1.0, 40), LAW, 60_000, Joint(range(5)), m=3_000)
    conclusions, notes = (getattr(round.unmixed()[0], each) for each in ("conclusions", "notes"))
    assert conclusions.suspects == ()
    assert "Malicious reports share item indices 0, 1, 2, 3, 4: raised or framed." in notes


def test_fewer_items_are_named_of_those_that_tell_the_same() -> None:
    """Reports that set one bit share that they leave out all items but two."""
    oracle = OUE(2.0, 26)
    users = Population(1 / np.arange(1, 27), 9_000, seed=0)
    rng = np.random.default_rng(0)
    fakes = oracle.encode(rng.choice([10, 20], 900), rng)
    clean = PoisonedRound.clean(oracle, users)
    reports = np.concatenate([clean.reports, fakes])
    round = replace(clean, malicious=Tally.of(oracle, fakes), reports=reports)
    notes = round.recover(RecoveryRequest("unmix")).notes
    assert "Malicious reports share item indices 10, 20: raised or framed." in notes
