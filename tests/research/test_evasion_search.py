"""The evasion search: its mixes, its verdicts, and that its best mix stays undetected."""

from collections.abc import Sequence

import numpy as np
import pytest
from evasion_search import (
    CONFIRMATION_ROUNDS,
    GENERATION_SIZE,
    SEARCH_ROUNDS,
    Candidate,
    Verdict,
    attacks_on,
    judge,
    search,
    table,
)

from ldprecover_experiments.attacks import Mix
from ldprecover_experiments.parameters import load_genuine_users


def test_mix_states_its_shares() -> None:
    mix = Candidate("apa", each=3, search=200, share=0.5, noise=0.3)
    assert mix.label == "50% APA, r' = 3, search 200 + 30% RPA + 20% RIA"
    assert [round(share, 3) for share, _, _ in mix.mix.parts] == [0.5, 0.3, 0.2]


def test_random_mixes_and_neighbours_stay_in_range() -> None:
    rng, attacks = np.random.default_rng(2), attacks_on("olh")
    mix = Candidate.random(rng, attacks)
    for _ in range(300):
        assert 0.005 < mix.share <= 1
        assert mix.share + mix.noise + mix.lies == pytest.approx(1, abs=2e-4)
        assert 2 <= mix.each <= 10
        assert 0.4 <= mix.rate <= 1
        assert 1 <= mix.search <= 400
        assert mix.mix.targeted
        mix = mix.neighbour(rng) if rng.random() < 0.9 else Candidate.random(rng, attacks)


def test_attacks_are_those_the_protocol_has_reports_for() -> None:
    assert attacks_on("grr") == [("mga", "sampled")]
    assert ("apa2", "crafted") in attacks_on("oue")
    assert ("apa2", "crafted") not in attacks_on("hr")


class Landscape:
    """A game in which a mix gains its share, and is detected above a share of 0.6."""

    def __init__(self) -> None:
        self.played: list[Mix] = []

    def __call__(self, trials: range, mixes: Sequence[Mix]) -> list[Verdict]:
        self.played += mixes
        gains = [mix.parts[0][0] for mix in mixes]
        return [Verdict(gain, ("excess",) if gain > 0.6 else ()) for gain in gains]


def test_search_approaches_the_highest_undetected_gain() -> None:
    landscape, again, other = Landscape(), Landscape(), Landscape()
    result = search("grr", "alarms", 0, 12, landscape)
    assert result.best is not None
    assert 0.5 < result.best.share <= 0.6
    assert 12 * GENERATION_SIZE < len(landscape.played) <= 12 * (GENERATION_SIZE + 4)
    assert search("grr", "alarms", 0, 12, again) == result
    assert again.played == landscape.played
    search("grr", "alarms", 1, 12, other)
    assert other.played != landscape.played


def test_search_without_result_says_nothing() -> None:
    result = search(
        "grr", "alarms", 0, 1, lambda _, mixes: [Verdict(1.0, ("excess",))] * len(mixes)
    )
    assert table([result]).rows == [["GRR", "alarms", "nothing", "", ""]]


def test_alarms_detect_mga_and_not_honest_lies() -> None:
    """20,000 users, a twentieth malicious: MGA on GRR raises excess in every round."""
    genuine_users = load_genuine_users("geometric", users=20_000)
    mga = Candidate("mga", "sampled").mix
    loud = judge(genuine_users, 0, "grr", "alarms", range(SEARCH_ROUNDS), mga)
    assert loud.detected_by
    assert loud.detections == 1
    assert loud.gain > 1
    confirmation = range(SEARCH_ROUNDS, SEARCH_ROUNDS + CONFIRMATION_ROUNDS)
    assert judge(genuine_users, 0, "grr", "alarms", confirmation, mga).detections == 2
    quiet = judge(genuine_users, 0, "grr", "alarms", range(3), Candidate("ria", "input").mix)
    assert quiet == Verdict(quiet.gain)


def test_mix_detected_in_confirmation_is_not_the_best() -> None:
    def lucky(trials: range, mixes: Sequence[Mix]) -> list[Verdict]:
        undetected = len(trials) == SEARCH_ROUNDS
        verdict = Verdict(1.0) if undetected else Verdict(1.0, ("excess",), 2)
        return [verdict] * len(mixes)

    assert search("grr", "alarms", 0, 2, lucky).best is None
