"""What a demo shows and says, from figures whose every number is known."""

import io
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from ldprecover_cli.demo.picture import draw
from ldprecover_cli.demo.words import sentences
from ldprecover_experiments.comparison import ESTIMATES, Comparison
from ldprecover_experiments.demo_settings import DemoSettings

TRUE = np.array([0.5, 0.3, 0.1, 0.05, 0.03, 0.01, 0.01])
ERRORS = {
    "genuine": 0.001,
    "poisoned": 0.1,
    "projected": 0.05,
    "recovered": 0.04,
    "unmixed": 0.02,
    "recovered_targets": 0.01,
}


@pytest.fixture
def figures() -> Comparison:
    """Each estimate is off by its number in every item, upwards where the target (item 6) is,
    downwards elsewhere.
    """
    off = np.array([-1.0, -1, -1, -1, -1, -1, 1])
    estimates: dict[str, np.ndarray | None] = {
        name: TRUE + ERRORS[name] * off for name in ESTIMATES
    }
    items = ("New York, NY", "b", "c", "d", "e", "f", "[bold]\x1b[2Jg")
    return Comparison(DemoSettings(users=1000, targets=1), items, (6,), TRUE, estimates)


def _drawn(figures: Comparison, width: int = 100, encoding: str = "utf-8") -> str:
    raw = io.BytesIO()
    with io.TextIOWrapper(raw, encoding=encoding, errors="replace") as file:
        draw(figures, Console(file=file, width=width, markup=False, highlight=False))
        file.flush()
        return raw.getvalue().decode(encoding)


def test_the_errors_are_those_of_the_estimates(figures: Comparison) -> None:
    assert figures.mse == pytest.approx({name: error**2 for name, error in ERRORS.items()})
    gains = {name: error - ERRORS["genuine"] for name, error in ERRORS.items()}
    assert figures.fg == pytest.approx(gains)


def test_json_has_exactly_the_promised_keys(figures: Comparison) -> None:
    written = figures.as_json()
    assert list(written) == ["settings", "targets", "mse", "fg"]
    assert list(written["mse"]) == list(written["fg"]) == list(ESTIMATES)
    assert written["targets"] == [figures.items[6]]


def test_last_line_states_what_is_certain_of_the_leader(figures: Comparison) -> None:
    sentence = "b leads. That holds even if up to 0.7 % of all reports were forged."
    text = _drawn(replace(figures, leader=sentence))
    assert text.endswith(f"The certificate says: {sentence}\n")
    assert "certificate" not in _drawn(figures)


@pytest.mark.parametrize("width", [90, 100, 132])
def test_the_picture_shows_every_column_and_fits(figures: Comparison, width: int) -> None:
    picture = _drawn(figures, width)
    assert max(map(len, picture.splitlines())) <= width
    for name in ("true", "genuine", "poisoned", "recovered", "recovered*", "MSE", "FG", "█"):
        assert name in picture
    assert "projected only" in " ".join(picture.split()) or "projected" in picture
    row = next(line for line in picture.splitlines() if "New York" in line)
    assert [word for word in row.split()[3:] if word[0].isdigit()] == [
        "50.0",
        "49.9",
        "40.0",
        "45.0",
        "46.0",
        "48.0",
        "49.0",
    ]


@pytest.mark.parametrize(
    ("width", "shown", "spared", "bars"),
    [
        (80, ["poisoned", "projected", "recovered", "unmixed", "recovered*"], "genuine", True),
        (60, ["poisoned", "unmixed", "recovered*"], "genuine, projected only, recovered", True),
        (40, ["poisoned", "recovered*"], "genuine, projected only, recovered, unmixed", False),
    ],
)
def test_a_narrow_terminal_gets_fewer_columns_whole_and_is_told(
    figures: Comparison, width: int, shown: list[str], spared: str, bars: bool
) -> None:
    picture = _drawn(figures, width)
    assert max(map(len, picture.splitlines())) <= width
    assert f"a wider terminal shows {spared} too" in " ".join(picture.split())
    shares, errors = picture.split("\n\n")[1], picture.split("\n\n")[2]
    header = next(line for line in shares.splitlines() if line.startswith("item"))
    row = next(line for line in shares.splitlines() if "New" in line)
    assert header.replace("only", "projected").split()[1:] == [
        "true",
        *shown,
    ]  # its first word is on the line above
    percent = {
        "true": 50.0,
        "poisoned": 40.0,
        "projected": 45.0,
        "recovered": 46.0,
        "unmixed": 48.0,
        "recovered*": 49.0,
    }
    assert [float(word) for word in row.split() if word[0].isdigit()] == [
        percent[name] for name in ("true", *shown)
    ]
    assert ("█" in row) is bars
    for name, mse in figures.mse.items():  # none is left out here
        line = next(line for line in errors.splitlines() if f"{mse:.2e}" in line)
        assert line.startswith(name.split("_")[0])


def test_targets_are_marked_and_shown_though_they_are_rare(figures: Comparison) -> None:
    picture = _drawn(figures)
    assert sum(line.startswith("> ") for line in picture.splitlines()) == 1
    assert not any(
        line.strip().startswith("f ") for line in picture.splitlines()
    )  # neither a top item nor a target


def test_labels_cannot_style_or_steer_the_terminal(figures: Comparison) -> None:
    picture = _drawn(figures)
    assert "\x1b" not in picture
    assert "[bold]" in picture


def test_a_terminal_without_unicode_gets_bars_of_ascii(figures: Comparison) -> None:
    assert "#####" in _drawn(figures, encoding="ascii")


def test_the_sentences_have_the_figures_numbers(figures: Comparison) -> None:
    attack, untargeted, unmixed, targeted = sentences(figures)
    assert "from 1.00e-06" in attack
    assert "to 1.00e-02" in attack
    assert "from a true 1.0 % to an estimated 11.0 %" in attack
    assert (
        "leaves 25 % of that MSE; LDPRecover without the targets leaves 16 %, and 89.3 % of that "
        "gain" in untargeted
    )
    assert (
        "leaves 4 %, 6.25 times better than projection alone: all targets together come out 1.9 "
        "points" in unmixed
    )
    assert "leaves 1 %, 25 times better than projection" in targeted
    assert "come out 0.9 points above their genuine estimate, not 3.9 points above" in targeted


def test_the_sentences_say_so_where_recovery_does_not_help(figures: Comparison) -> None:
    def with_errors(**errors: float) -> Comparison:
        changed = {name: TRUE + error for name, error in errors.items()}
        return replace(figures, estimates={**figures.estimates, **changed})

    worse = sentences(with_errors(projected=0.2, recovered=0.3, recovered_targets=0.4))
    assert "Projection on the simplex alone does not lower it (4.00e-02)" in worse[1]
    assert "LDPRecover without the targets makes it worse (9.00e-02)" in worse[1]
    assert "leaves 1,600 %, 4 times worse than projection" in worse[3]
    assert "no gain beyond the projection's" in sentences(with_errors(recovered=0.06))[1]
    only = sentences(with_errors(projected=0.2))[1]
    assert "does not lower it (4.00e-02); LDPRecover without the targets leaves 16 %." in only


def test_targets_that_come_out_the_same_are_not_set_against_themselves(figures: Comparison) -> None:
    alike = replace(
        figures,
        estimates={**figures.estimates, "recovered_targets": figures.estimates["recovered"]},
    )
    assert sentences(alike)[3].endswith(
        "come out 3.9 points above their genuine estimate, told or not."
    )


def test_an_error_of_nothing_at_all_is_no_reason_to_fail(figures: Comparison) -> None:
    """With two items and few users a recovery can be exact."""
    exact: dict[str, np.ndarray | None] = {**figures.estimates, "recovered_targets": TRUE}
    assert (
        "leaves 0 %, better than projection alone"
        in sentences(replace(figures, estimates=exact))[3]
    )
    assert (
        "leaves 0 %, as much as projection alone"
        in sentences(replace(figures, estimates={**exact, "projected": TRUE}))[3]
    )


def test_without_targets_there_is_neither_gain_nor_ldprecover_star(figures: Comparison) -> None:
    settings = replace(figures.settings, attack="manip")
    untargeted = replace(
        figures,
        settings=settings,
        targets=None,
        estimates={**figures.estimates, "recovered_targets": None},
    )
    picture = _drawn(untargeted)
    assert "FG" not in picture
    assert "recovered*" not in picture
    assert len(sentences(untargeted)) == 3


def test_without_an_attacker_it_says_so(figures: Comparison) -> None:
    (sentence,) = sentences(replace(figures, settings=replace(figures.settings, beta=0.0)))
    assert sentence.startswith("Nobody attacked")
    assert "Nobody attacked" in _drawn(
        replace(figures, settings=replace(figures.settings, beta=0.0))
    )
