"""The search for what no alarm sees: its mixes, how it goes on, and that what it finds is not
seen.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from ldprecover import ParameterError
from ldprecover_experiments.attacks import parse
from ldprecover_experiments.setting import load_crowd
from ldprecover_experiments.unseen import (
    CONFIRMED,
    GENERATION,
    ROUNDS,
    Candidate,
    Search,
    Verdict,
    Verdicts,
    attacks_on,
    judged,
    table,
)


def test_a_mix_says_its_shares_and_its_text_is_an_attack() -> None:
    mix = Candidate("apa", each=3, search=200, share=0.5, noise=0.3)
    assert mix.words == "50% APA, r' = 3, search 200 + 30% RPA + 20% RIA"
    assert str(parse(mix.text)) == mix.text
    assert [round(share, 3) for share, _, _ in parse(mix.text).parts] == [0.5, 0.3, 0.2]  # type: ignore[union-attr]
    assert parse(Candidate("mga", "sampled").text).targets == 10


def test_what_is_drawn_or_moved_is_a_mix() -> None:
    rng, attacks = np.random.default_rng(2), attacks_on("olh")
    one = Candidate.drawn(rng, attacks)
    for _ in range(300):
        assert 0.005 < one.share <= 1
        assert one.share + one.noise + one.lies == pytest.approx(1, abs=2e-4)
        assert 2 <= one.each <= 10
        assert 0.4 <= one.rate <= 1
        assert 1 <= one.search <= 400
        assert parse(one.text).targeted
        one = one.moved(rng) if rng.random() < 0.9 else Candidate.drawn(rng, attacks)


def test_a_protocol_has_the_attacks_that_it_has_reports_for() -> None:
    assert attacks_on("grr") == [("mga", "sampled")]
    assert ("apa2", "crafted") in attacks_on("oue")
    assert ("apa2", "crafted") not in attacks_on("hr")


class Landscape:
    """A play in which a mix gains its share, and above six tenths is seen; it writes down what it
    played.
    """

    def __init__(self) -> None:
        self.played: list[str] = []

    def __call__(self, trials: range, texts: Sequence[str]) -> list[Verdict]:
        self.played += texts
        gains = [parse(text).parts[0][0] for text in texts]  # type: ignore[union-attr]
        return [Verdict(gain, ("excess",) if gain > 0.6 else ()) for gain in gains]


def test_a_search_comes_near_the_highest_gain_that_is_not_seen_and_is_the_same_again() -> None:
    play = Landscape()
    found = Search("grr", "alarms", 0, 12).run(play)
    assert found.best is not None
    assert 0.5 < found.best.share <= 0.6
    assert 12 * GENERATION < len(play.played) <= 12 * (GENERATION + 4)
    again = Landscape()
    assert Search("grr", "alarms", 0, 12).run(again) == found
    assert again.played == play.played
    other = Landscape()
    Search("grr", "alarms", 1, 12).run(other)
    assert other.played != play.played


def test_a_search_that_finds_nothing_says_so() -> None:
    found = Search("grr", "alarms", 0, 1).run(
        lambda trials, texts: [Verdict(1.0, ("excess",))] * len(texts)
    )
    assert table([found]).rows == [["GRR", "alarms", "nothing", "", ""]]


def test_what_the_alarms_see_is_seen_and_stops_a_mix_at_its_first_round() -> None:
    """20,000 users, a twentieth crafted: MGA on GRR raises excess in any round, honest lies in none
    of three.
    """
    crowd = load_crowd("geometric", users=20_000)
    loud = judged(crowd, 0, "grr", "alarms", range(ROUNDS), Candidate("mga", "sampled").text)
    assert loud.seen
    assert loud.times == 1
    assert loud.gain > 1
    quiet = judged(crowd, 0, "grr", "alarms", range(3), Candidate("ria", "input").text)
    assert quiet == Verdict(quiet.gain)


def test_a_confirmation_ends_where_a_mix_is_seen_too_often_and_such_a_mix_is_not_the_best() -> None:
    crowd = load_crowd("geometric", users=20_000)
    found = judged(
        crowd,
        0,
        "grr",
        "alarms",
        range(ROUNDS, ROUNDS + CONFIRMED),
        Candidate("mga", "sampled").text,
    )
    assert found.times == 2

    def lucky(trials: range, texts: Sequence[str]) -> list[Verdict]:
        """Nobody is seen in the first rounds, everybody in those that confirm."""
        return [Verdict(1.0) if len(trials) == ROUNDS else Verdict(1.0, ("excess",), 2)] * len(
            texts
        )

    assert Search("grr", "alarms", 0, 2).run(lucky).best is None


def test_verdicts_on_the_disk_are_not_played_again_and_a_torn_line_is_passed_over(
    tmp_path: Path,
) -> None:
    crowd, search = load_crowd("geometric", users=2_000), Search("grr", "alarms", 0, 1)
    texts = [Candidate("mga", "sampled", share).text for share in (0.1, 0.2)]
    file = tmp_path / "verdicts.jsonl"
    first = Verdicts(file).player(crowd, search, map)(range(1), texts)
    file.write_text(file.read_text() + '["half a li')

    def never(one: object, missing: Sequence[str]) -> list[Verdict]:
        assert not missing
        return []

    assert Verdicts(file).player(crowd, search, never)(range(1), texts) == first
    # Another number of trials is another question.
    with pytest.raises(AssertionError):
        Verdicts(file).player(crowd, search, never)(range(2), texts)


def test_a_watcher_that_there_is_not_is_refused() -> None:
    with pytest.raises(ParameterError, match="the watcher must be one of alarms"):
        Search("grr", "nobody", 0, 1)
