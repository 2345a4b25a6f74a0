"""What a demo shows and says, from figures whose every number is known."""

import io
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from ldprecover import project_simplex
from ldprecover_cli.demo.picture import draw
from ldprecover_experiments.simulation.comparison import ESTIMATES, Comparison
from ldprecover_experiments.simulation.demo_settings import DemoSettings

TRUE = np.array([0.5, 0.3, 0.1, 0.05, 0.03, 0.01, 0.01])
ERRORS = {
    "genuine": 0.001,
    "poisoned": 0.1,
    "recovered": 0.04,
    "unmixed": 0.02,
    "recovered_targets": 0.01,
}


@pytest.fixture
def figures() -> Comparison:
    """Each estimate is off by its number in every item, upwards where the target (item 6) is,
    downwards elsewhere; the projection is that of the poisoned estimate.
    """
    off = np.array([-1.0, -1, -1, -1, -1, -1, 1])
    estimates: dict[str, np.ndarray | None] = {
        name: TRUE + error * off for name, error in ERRORS.items()
    }
    estimates["projected"] = project_simplex(TRUE + ERRORS["poisoned"] * off)
    estimates = {name: estimates[name] for name in ESTIMATES}
    items = ("New York, NY", "b", "c", "d", "e", "f", "[bold]\x1b[2Jg")
    return Comparison(DemoSettings(users=1000, targets=1), items, (6,), TRUE, estimates)


def _picture(figures: Comparison, width: int = 100, encoding: str = "utf-8") -> str:
    raw = io.BytesIO()
    with io.TextIOWrapper(raw, encoding=encoding, errors="replace") as file:
        draw(figures, Console(file=file, width=width, markup=False, highlight=False))
        file.flush()
        return raw.getvalue().decode(encoding)


@pytest.mark.parametrize(
    ("width", "shown", "spared", "bars"),
    [
        (132, [49.9, 40.0, 46.8, 46.0, 48.0, 49.0], "", True),
        (100, [49.9, 40.0, 46.8, 46.0, 48.0, 49.0], "", True),
        (80, [40.0, 46.8, 48.0, 49.0], "before the attack, LDPRecover", True),
        (60, [40.0, 48.0, 49.0], "before the attack, LDPRecover, projection alone", True),
        (40, [40.0, 49.0], "before the attack, LDPRecover, projection alone, un-mixing", False),
    ],
)
def test_narrow_terminal_gets_fewer_columns_whole_and_is_told(
    figures: Comparison, width: int, shown: list[float], spared: str, bars: bool
) -> None:
    picture = _picture(figures, width)
    assert max(map(len, picture.splitlines())) <= width
    text = " ".join(picture.split())
    assert f"a wider terminal shows {spared} too" in text or not (spared or "wider" in text)
    row = next(line for line in picture.splitlines() if "New" in line)
    assert [float(word) for word in row.split() if word[0].isdigit()] == [50.0, *shown]
    assert ("█" in row) is bars
    errors = picture.split("\n\n")[2]
    assert "FG, gain" in errors
    for mse in figures.mse.values():
        assert f"{mse:.2e}" in errors


def test_targets_are_marked_and_shown_though_they_are_rare(figures: Comparison) -> None:
    marks = [line[:6] for line in _picture(figures).splitlines()]
    assert sum(mark.startswith("> ") for mark in marks) == 1
    assert not any(mark.strip().startswith("f ") for mark in marks)  # neither top nor target


def test_labels_cannot_style_or_steer_the_terminal(figures: Comparison) -> None:
    picture = _picture(figures)
    assert ("\x1b" in picture, "[bold]" in picture) == (False, True)


def test_a_terminal_without_unicode_gets_bars_of_ascii(figures: Comparison) -> None:
    assert "#####" in _picture(figures, encoding="ascii")


def test_without_targets_there_is_neither_gain_nor_ldprecover_star(figures: Comparison) -> None:
    settings = replace(figures.settings, attack="manip")
    estimates = {**figures.estimates, "recovered_targets": None}
    picture = _picture(replace(figures, settings=settings, targets=None, estimates=estimates))
    assert ("FG" in picture, "told the" in picture) == (False, False)


def test_without_an_attacker_it_says_so(figures: Comparison) -> None:
    picture = _picture(replace(figures, settings=replace(figures.settings, beta=0.0)))
    assert "Nobody attacked." in picture
    assert "after the attack" not in picture
