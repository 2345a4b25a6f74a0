"""The score of a drill, from estimates whose every error is known."""

import json

import numpy as np
import pytest

from ldprecover import project_simplex
from ldprecover_experiments.drill.score import PROJECTION, Recovered, Score

TRUE = np.array([0.4, 0.3, 0.2, 0.1])
OFF = np.array([-1.0, -1, 1, 1])


def score(**recovered: Recovered) -> Score:
    """The genuine estimate is off by 0.01 in each item, the poisoned one by 0.1; item 3 is the
    target.
    """
    return Score(
        ("a", "b", "c", "<b>d</b>"), (3,), TRUE, TRUE + 0.01 * OFF, TRUE + 0.1 * OFF, recovered, 5
    )


def off_by(error: float, *notes: str) -> Recovered:
    return Recovered(TRUE + error * OFF, notes)


def test_the_figures_are_those_of_the_estimates() -> None:
    rows = {row.name: row for row in score(half=off_by(0.05, "a note")).rows()}
    assert list(rows) == ["genuine", "poisoned", PROJECTION, "half"]
    assert {name: row.mse for name, row in rows.items()} == pytest.approx(
        {"genuine": 1e-4, "poisoned": 1e-2, PROJECTION: 1e-2, "half": 25e-4}
    )
    assert {name: row.fg for name, row in rows.items()} == pytest.approx(
        {"genuine": 0.0, "poisoned": 0.09, PROJECTION: 0.09, "half": 0.04}
    )
    assert rows["half"].times == pytest.approx(4.0)
    assert rows["half"].notes == ("a note",)


def test_baseline_is_the_projection_on_the_simplex() -> None:
    computed = Score(
        ("a", "b"), None, np.array([0.5, 0.5]), np.array([0.5, 0.5]), np.array([-0.2, 1.5]), {}, 1
    )
    assert computed.projected == pytest.approx(project_simplex(np.array([-0.2, 1.5])))
    assert computed.rows()[2].mse == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            0.05,
            (
                "It leaves 25 % of the poisoned error. Its error is 4 times smaller than that of "
                "projection alone."
            ),
        ),
        (
            0.1,
            (
                "It leaves 100 % of the poisoned error. That is what projection alone does: it "
                "does "
                "not help here."
            ),
        ),
        (
            0.2,
            (
                "It makes the poisoned estimate worse: its error is 4 times larger. "
                "Projection alone does better: its error is 4 times smaller."
            ),
        ),
        (
            0.0,
            (
                "It leaves 0 % of the poisoned error. Its error is smaller than that of projection "
                "alone."
            ),
        ),
    ],
)
def test_words_say_whether_a_method_helps(error: float, words: str) -> None:
    assert score(method=off_by(error)).rows()[-1].says == words


def test_a_method_that_refuses_says_why() -> None:
    row = score(detection=Recovered(None, refused="it needs the reports")).rows()[-1]
    assert (row.mse, row.fg, row.times, row.says) == (
        None,
        None,
        None,
        "It refuses: it needs the reports",
    )


def test_no_gain_without_targets_and_no_attack_without_attackers() -> None:
    computed = Score(
        ("a", "b"), None, np.array([0.5, 0.5]), np.array([0.4, 0.6]), np.array([0.4, 0.6]), {}, 0
    )
    assert {row.fg for row in computed.rows()} == {None}
    assert computed.rows()[1].says == "Nobody attacked."


def test_json_has_every_column_and_is_strict() -> None:
    half = np.array([0.5, 0.5])
    exact = Score(("a", "b"), (0,), half, half, half, {"it": Recovered(half)}, 1).as_json()
    assert json.loads(json.dumps(exact, allow_nan=False))["columns"].keys() == {
        *("true", "genuine", "poisoned", PROJECTION, "it")
    }
    assert exact["rows"][-1]["times"] is None
