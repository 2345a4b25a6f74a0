"""The evaluation of attacks on un-mixing itself: its cells, its knowledge, its scores."""

from dataclasses import replace

import numpy as np
import pytest

from ldprecover import RecoveryRequest
from ldprecover_attacker import Joint
from ldprecover_experiments.adversarial_evaluation import (
    DATA,
    PARTS,
    Informed,
    Part,
    lowest,
    overall,
    summary,
)
from ldprecover_experiments.attacks import AttackSpec
from ldprecover_experiments.measures import Outcome, measure
from ldprecover_experiments.parameters import Cell, GenuineUsers, load_users_by_data
from ldprecover_experiments.poisoned_round import RoundSimulation, simulate_round


@pytest.fixture(scope="module")
def users_by_data() -> dict[str, GenuineUsers]:
    return load_users_by_data(DATA, users=2_000)


def settings(part: str, users_by_data: dict[str, GenuineUsers], share: float = 1) -> list[Cell]:
    work = PARTS[part].work(users_by_data, 0)
    return list(PARTS[part].cells(work, (), 1, share))


def test_parts_have_every_combination_that_has_reports(
    users_by_data: dict[str, GenuineUsers],
) -> None:
    steps = {"steps": users_by_data["steps"]}
    framing = settings("framing", steps)
    # Three sizes of sets, but of OLH only those that a seed can put into one bucket.
    assert len(framing) == 4 * 4 * (3 * 3) + 4 * (3 + 2 + 2 + 1)
    assert len(settings("clean", steps)) == 7 * 6
    assert {cell.beta for cell in settings("named", steps)} == {0.0}


def test_share_of_the_settings_is_nested(users_by_data: dict[str, GenuineUsers]) -> None:
    every, many, few = (settings("clean", users_by_data, share) for share in (1, 0.5, 0.1))
    assert set(map(str, few)) < set(map(str, many)) < set(map(str, every))
    # Binomial(378, 0.1): outside 10 to 75 less than once in 10^6.
    assert 10 < len(few) < 75


def test_targets_are_the_most_or_the_least_popular(
    users_by_data: dict[str, GenuineUsers],
) -> None:
    users = users_by_data["geometric"]
    part = Part({"name": "joint", "item": "rival"}, targets=[4], protocols=["oue"], beta=[0.05])
    work = part.work({"geometric": users}, 0)
    attack = RoundSimulation(next(part.cells(work, (), 1, 1)), users, 0).attack
    assert attack == Joint([0, 1, 2, 3], item=4)
    canaries = PARTS["canaries"]
    work = canaries.work({"geometric": users}, 0)
    cell = next(canaries.cells(work, ("ss",), 1, 1))
    with_canaries = work.users_by_data["geometric"]
    assert RoundSimulation(cell, with_canaries, 0).targets == tuple(range(57, 62))
    assert with_canaries.counts[57:].sum() == 0


def framed(
    beta: float, knowledge: str, method: str = "unmix", attack: str = "joint"
) -> tuple[Cell, Informed]:
    spec = AttackSpec.of(attack, targets=["item 1", "item 2", "item 3"])
    cell = Cell("steps", "oue", spec, "crafted", beta, 1.0)
    return cell, Informed(
        method, method, knowledge=knowledge, history=knowledge in ("history", "infer")
    )


def test_un_mixing_knows_what_the_part_says(users_by_data: dict[str, GenuineUsers]) -> None:
    users = users_by_data["steps"]
    cell, spec = framed(0.05, "targets")
    round_ = simulate_round(cell, users, 0, reports=True, drift=0.5)
    assert spec.recovery(round_).targets == (0, 1, 2)
    request = RecoveryRequest("unmix")
    unaware = replace(spec, knowledge="").recovery(round_)
    assert np.array_equal(unaware.recovered, round_.recover(request).recovered)
    aware = replace(spec, knowledge="canaries").recovery(round_)
    assert aware.recovered[:3] == pytest.approx(0, abs=1e-9)


def test_history_attacks_the_earlier_round_alone(users_by_data: dict[str, GenuineUsers]) -> None:
    cell, spec = framed(0.2, "history", "norm-sub")
    round_ = simulate_round(cell, users_by_data["steps"], 0, reports=True, drift=0.0)
    assert spec.recovery(round_).poisoned.tolist() == round_.f_genuine.tolist()


def test_outcomes_separate_innocent_suspects_from_raised_items() -> None:
    """MGA raises its targets, framing does not; un-mixing suspects both at this rate."""
    users = load_users_by_data(["steps"], users=50_000)["steps"]
    for name in ("joint", "mga"):
        cell, spec = framed(0.05, "", attack=name)
        round_ = simulate_round(cell, users, 0, reports=True)
        (outcome,) = measure(round_, [spec])
        recovery = spec.recovery(round_)
        conclusions = recovery.conclusions
        assert conclusions is not None
        suspects = {p for item, p in conclusions.suspects if name == "joint" or item > 2}
        assert outcome.innocent == max(suspects, default=0.0)
        assert outcome.total == pytest.approx(recovery.recovered[:3].sum())
        assert outcome.targets_coverage in (0, 1 / 3, 2 / 3, 1)


def test_scores_are_ratios_of_means_and_extremes_of_rounds() -> None:
    users = {"steps": load_users_by_data(["steps"], users=2_000)["steps"]}
    results: dict[str, dict[Cell, list[Outcome]]] = {"framing": {}}
    for beta, errors in ((0.01, (2.0, 4.0)), (0.05, (1.0, 0.5))):
        for trial, error in enumerate(errors):
            cell = replace(framed(beta, "")[0], trial=trial)
            results["framing"][cell] = [
                Outcome("projection", 6.0, None, None, 0.0, total=0.3),
                Outcome(
                    "unmix",
                    error,
                    None,
                    None,
                    0.0,
                    0.9,
                    1.0,
                    0.4 + 0.4 * trial,
                    targets_coverage=0.5,
                    total=0.2,
                    innocent=beta,
                ),
            ]
    every = summary(results, users)
    (row,) = overall(every).rows
    # 6/3 and 6/0.75: their geometric mean is 4; three items of .099.
    assert row == [
        "framing",
        "",
        "2",
        "4.00",
        "2.00",
        "0.90",
        "0.50",
        "0.20",
        "0.30",
        "0.05",
        "0.50",
    ]
    assert [each[5] for each in every.rows if each[2] == "beta"] == ["2.00", "8.00"]
    assert [each[-1] for each in lowest(results).rows] == ["2.00", "8.00"]
