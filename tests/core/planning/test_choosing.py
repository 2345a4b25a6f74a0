"""Which protocol is chosen for a round, and why."""

import math
from itertools import groupby

import numpy as np
import pytest

from ldprecover import ParameterError, frequency_oracle
from ldprecover.planning.choosing import choose
from ldprecover.protocols import PROTOCOLS
from ldprecover_attacker import MGA


@pytest.mark.parametrize(
    ("d", "epsilon", "n", "expected"),
    [
        (2, 0.5, 10_000, "grr"),
        (4, 1.0, 10_000, "grr"),
        (10, 4.0, 10_000, "grr"),
        (102, 2.0, 400_000, "olh"),
        (100_000, 0.2, 10_000_000, "hr"),
        (100_000, 0.5, 10_000_000, "hr"),
        (100_000, 4.0, 10_000_000, "olh"),
    ],
)
def test_the_choice_for_a_round(d: int, epsilon: float, n: int, expected: str) -> None:
    assert choose(d, epsilon, n).best.oracle.protocol == expected


def test_every_protocol_is_a_candidate_and_the_best_comes_first() -> None:
    choice = choose(102, 0.5, 10_000)
    assert {each.oracle.protocol for each in choice.candidates} == set(PROTOCOLS)
    scores = [each.score for each in choice.candidates]
    assert scores == sorted(scores)
    assert min(scores) >= 0


def test_grr_beats_olh_at_four_items() -> None:
    actual = {each.oracle.protocol: each for each in choose(4, 1.0, 10_000).candidates}
    assert actual["grr"].standard_error / actual["olh"].standard_error == pytest.approx(
        2 / 3, abs=0.03
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_candidate_costs_are_the_oracles(protocol: str) -> None:
    d, n = 102, 5_000
    (one,) = choose(d, 0.5, n, [protocol]).candidates
    oracle = frequency_oracle(protocol, 0.5, d)
    assert one.oracle == oracle
    assert one.standard_error == pytest.approx(math.sqrt(float(oracle.variance(1 / d, n))))
    assert (one.report_size, one.hash_tests) == (oracle.wire.size, n * oracle.hash_tests)
    # The gain per malicious share is the attack's own, of targets that nobody holds; of HR of those
    # that one column supports, as column 1 does the items of odd index.
    targets = list(range(1, 20, 2))
    assert one.targets == 10
    assert one.gain == pytest.approx(MGA(targets).gain(oracle, np.zeros(d), 1.0))


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.5, 1.0, 2.0])
def test_choice_does_not_depend_on_the_targets(epsilon: float) -> None:
    """From one number of items to the next nothing changes: past 100 items each protocol has one
    stretch.
    """
    chosen = [choose(d, epsilon, 10_000).best.oracle.protocol for d in range(130, 240)]
    assert len(set(chosen)) == 1
    actual = [choose(round(1.3**i), epsilon, 10_000).best.oracle.protocol for i in range(3, 44)]
    assert [name for name, _ in groupby(actual)] == list(dict.fromkeys(actual))


@pytest.mark.parametrize("d", [3, 7, 60, 102])
def test_no_targets_gain_more_of_hr(d: int) -> None:
    oracle, rng = frequency_oracle("hr", 0.5, d), np.random.default_rng(d)
    (one,) = choose(d, 0.5, 100, ["hr"]).candidates
    for _ in range(20):
        targets = rng.choice(d, one.targets, replace=False).tolist()
        assert MGA(targets).gain(oracle, np.zeros(d), 1.0) <= one.gain * (1 + 1e-9)


def test_more_users_raise_the_cost_of_hashing() -> None:
    few, many = (choose(100_000, 1.0, n, ["olh", "hr"]).candidates for n in (1_000, 10**9))
    assert [each.oracle.protocol for each in few] == ["olh", "hr"]
    assert [each.oracle.protocol for each in many] == ["hr", "olh"]


def test_choice_states_its_reasons() -> None:
    why = choose(4, 1.0, 10_000, ["olh", "grr"]).why
    best, other = why.splitlines()
    assert best.startswith(
        "grr: one standard error is 1.37 percentage points, 1 % crafted reports raise 2 items"
    )
    assert best.endswith("points, 4 bytes a report")
    assert other.startswith("olh: one standard error is 2 percentage points, 1 % crafted")
    assert other.endswith("6 bytes a report, 4e+04 hashes to count")


@pytest.mark.parametrize("n", [0, -1, 2.5, True, "many"])
def test_number_of_users_must_be_positive(n: object) -> None:
    with pytest.raises(ParameterError, match="number of users"):
        choose(10, 1.0, n)  # type: ignore[arg-type]


def test_no_protocol_is_no_choice() -> None:
    with pytest.raises(ParameterError, match="at least one"):
        choose(10, 1.0, 100, [])
