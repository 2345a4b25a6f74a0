"""The score of a demo, from estimates whose every error is known."""

import json
from collections.abc import Mapping

import numpy as np
import pytest

from ldprecover import project_simplex
from ldprecover_experiments.simulation.demo_score import AFTER, BEFORE, Score
from ldprecover_experiments.simulation.demo_words import PROJECTION, TOLD
from ldprecover_experiments.simulation.poisoned_round import Targets, Vector

TRUE = np.array([0.4, 0.3, 0.2, 0.1])
OFF = np.array([-1.0, -1, 1, 1])


def score(
    recovered: Mapping[str, Vector] | None = None,
    *,
    attacked: float = 0.1,
    malicious: int = 5,
    targets: Targets | None = (3,),
) -> Score:
    """The genuine estimate is off by 0.01 in each item, the poisoned one by `attacked`."""
    return Score(
        items=("a", "b", "c", "<b>d</b>"),
        targets=targets,
        true=TRUE,
        genuine=TRUE + 0.01 * OFF,
        poisoned=TRUE + attacked * OFF,
        recovered=recovered or {},
        malicious=malicious,
    )


def off_by(error: float) -> Vector:
    return TRUE + error * OFF


def test_figures_are_those_of_the_estimates() -> None:
    rows = {row.name: row for row in score({"half": off_by(0.05)}).rows}
    assert list(rows) == [BEFORE, AFTER, "half"]
    assert rows[AFTER].names == (AFTER, PROJECTION), "it is in the simplex"
    assert {name: row.mse for name, row in rows.items()} == pytest.approx(
        {BEFORE: 1e-4, AFTER: 1e-2, "half": 25e-4}
    )
    assert {name: row.harm for name, row in rows.items()} == pytest.approx(
        {BEFORE: 1, AFTER: 100, "half": 25}
    )
    assert {name: row.gain for name, row in rows.items()} == pytest.approx(
        {BEFORE: 0.0, AFTER: 0.09, "half": 0.04}
    )
    assert {name: row.excess for name, row in rows.items()} == pytest.approx(
        {BEFORE: 0.01, AFTER: 0.1, "half": 0.05}
    )
    assert rows["half"].times == pytest.approx(4.0)


def test_baseline_is_the_projection_on_the_simplex() -> None:
    half = np.array([0.5, 0.5])
    computed = Score(
        items=("a", "b"),
        targets=None,
        true=half,
        genuine=half,
        poisoned=np.array([-0.2, 1.5]),
        recovered={},
        malicious=1,
    )
    assert computed.columns[PROJECTION] == pytest.approx(project_simplex(np.array([-0.2, 1.5])))
    assert computed.rows[-1].mse == pytest.approx(0.25)


def test_equal_estimates_share_a_row() -> None:
    recovered = {
        "same": project_simplex(TRUE + 0.6 * OFF),
        "half": off_by(0.05),
        "near": off_by(0.0501),
        "other": off_by(0.052),
    }
    computed = score(recovered, attacked=0.6)
    names = [row.names for row in computed.rows]
    assert names == [(BEFORE,), (AFTER,), (PROJECTION, "same"), ("other",), ("half", "near")]


def test_rows_are_in_the_order_of_their_errors() -> None:
    computed = score({"best": off_by(0.02), "worst": off_by(0.2), "middle": off_by(0.05)})
    assert [row.name for row in computed.rows] == [BEFORE, AFTER, "worst", "middle", "best"]


@pytest.mark.parametrize(
    ("recovered", "headline"),
    [
        (
            {"un-mixing": 0.01, f"un-mixing{TOLD}": 0.011, f"LDPRecover{TOLD}": 0.05},
            (
                "Un-mixing wins: 100 times better than projection alone. "
                "LDPRecover told the targets: 4.0 times."
            ),
        ),
        (
            {"un-mixing": 0.02, f"un-mixing{TOLD}": 0.01},
            "Un-mixing told the targets wins: 100 times better than projection alone.",
        ),
        ({"norm-cut": 0.0}, "Norm-cut wins: infinitely many times better than projection alone."),
        (
            {"LDPRecover": 0.1, "norm-cut": 0.2},
            "No recovery does better than projection alone here.",
        ),
        ({"LDPRecover": 0.099}, "No recovery does better than projection alone here."),
        ({}, "No recovery does better than projection alone here."),
    ],
)
def test_headline_is_the_verdict(recovered: dict[str, float], headline: str) -> None:
    computed = score({name: off_by(error) for name, error in recovered.items()})
    assert computed.headline == headline


@pytest.mark.parametrize(
    ("malicious", "attacked", "headline"),
    [
        (0, 0.01, "Nobody attacked. Method is 1.2 times better than projection alone."),
        (5, 0.0102, "The attack did no harm here. Method is 1.3 times better than projection "),
        (5, -0.0102, "Method wins: 1.3 times better than projection alone."),
    ],
    ids=["nobody", "harmless", "targets lowered"],
)
def test_headline_says_whether_the_attack_did_harm(
    malicious: int, attacked: float, headline: str
) -> None:
    computed = score({"method": off_by(0.009)}, malicious=malicious, attacked=attacked)
    assert computed.headline.startswith(headline)


def test_details_say_what_remains() -> None:
    attack, projection, best = score({"good": off_by(0.05)}, attacked=0.6).details
    assert attack == (
        "The attack made the error 3,600 times as large, and raised the target by 59 percentage "
        "points."
    )
    assert projection == (
        "Projection alone leaves 1,240 times the error before the attack, and the target 35 "
        "percentage points too high."
    )
    assert best == (
        "Good leaves 25 times the error before the attack, and the target 5.0 percentage points "
        "too high."
    )


def test_details_say_where_targets_were_lowered() -> None:
    attack, projection, _ = score({"method": off_by(0.1)}, attacked=-0.1, targets=(2, 3)).details
    assert attack.endswith("lowered the 2 targets together by 22 percentage points.")
    assert projection.endswith("the 2 targets together 20 percentage points too low.")


def test_details_list_methods_that_do_not_help() -> None:
    useless = {name: off_by(0.1 + 0.01 * i) for i, name in enumerate("pqrst")}
    assert score(useless).details[-1] == ("No better than projection alone: p, t, s and 2 others.")
    alone = {"LDPRecover": off_by(0.1)}
    assert score(alone).details[-1].endswith("it needs to be told the targets.")
    assert "told the targets" not in " ".join(score(alone, malicious=0).details)
    assert "targets" not in " ".join(score(targets=None).details)
    assert "targets" not in " ".join(score(malicious=0).details)


def test_json_is_strict_where_errors_are_zero() -> None:
    half = np.array([0.5, 0.5])
    exact = Score(
        items=("a", "b"),
        targets=(0,),
        true=half,
        genuine=half,
        poisoned=half,
        recovered={"it": half},
        malicious=1,
    )
    assert exact.rows[0].harm is None
    assert json.loads(json.dumps(exact.as_json(), allow_nan=False)) == {
        "headline": exact.headline,
        "details": exact.details,
        "targets": [0],
        "truth": [0.5, 0.5],
        "genuine": [0.5, 0.5],
        "poisoned": [0.5, 0.5],
        "recovered": None,
        "best": None,
    }
