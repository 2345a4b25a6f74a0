"""What holds for every attack, report model and protocol."""

import dataclasses

import numpy as np
import pytest

from ldprecover import OLH, OUE, FrequencyOracle, ParameterError, Tally, wire
from ldprecover_attacker import MGA, Attack


def rng(seed: int = 7) -> np.random.Generator:
    return np.random.default_rng(seed)


def leaves_nothing_to_chance(attack: Attack, oracle: FrequencyOracle) -> bool:
    """Whether every report is the same: one target under GRR, or targets enough to fill an OUE report."""
    if not isinstance(attack, MGA) or isinstance(oracle, OLH):
        return False
    full = isinstance(oracle, OUE) and attack.model == "crafted" and len(attack.targets) >= oracle.honest_support_size
    return full or (len(attack.targets) == 1 and not (isinstance(oracle, OUE) and oracle.honest_support_size >= 2))


@pytest.mark.parametrize("m", [0, 1, 333])
def test_reports_are_m_valid_packed_rows(attack: Attack, oracle: FrequencyOracle, m: int) -> None:
    reports = attack.reports(oracle, m, rng())
    expected = np.empty(m, dtype=oracle.report_dtype)
    assert (reports.shape, reports.dtype) == (expected.shape, expected.dtype)
    oracle.check(reports)
    assert Tally.of(oracle, reports).n == m


def test_reports_survive_the_packed_form(attack: Attack, oracle: FrequencyOracle) -> None:
    reports = attack.reports(oracle, 50, rng())
    packed = wire.pack(reports)
    assert len(packed) == 50 * oracle.report_size
    assert wire.pack(wire.unpack(oracle, packed)) == packed


def test_the_same_seed_gives_the_same_bytes(attack: Attack, oracle: FrequencyOracle) -> None:
    assert attack.reports(oracle, 200, rng()).tobytes() == attack.reports(oracle, 200, rng()).tobytes()


def test_another_seed_gives_other_reports(attack: Attack, oracle: FrequencyOracle) -> None:
    one, other = (attack.reports(oracle, 200, rng(seed)) for seed in (7, 8))
    assert (one.tobytes() == other.tobytes()) is leaves_nothing_to_chance(attack, oracle)


def test_one_generator_gives_two_calls_different_reports(attack: Attack, oracle: FrequencyOracle) -> None:
    generator = rng()
    one, other = (attack.reports(oracle, 200, generator) for _ in range(2))
    assert (one.tobytes() == other.tobytes()) is leaves_nothing_to_chance(attack, oracle)


def test_the_global_generator_is_left_alone(attack: Attack, oracle: FrequencyOracle) -> None:
    before = np.random.get_state(legacy=False)["state"]["key"].copy()
    attack.reports(oracle, 20, rng())
    after = np.random.get_state(legacy=False)["state"]["key"]
    assert np.array_equal(before, after)


def test_a_number_of_users_that_is_none_is_refused(attack: Attack, oracle: FrequencyOracle) -> None:
    for m in (-1, 2.0, "3", True, None):
        with pytest.raises(ParameterError, match="must be an integer from 0"):
            attack.reports(oracle, m, rng())  # type: ignore[arg-type]


def test_resolving_changes_no_report(attack: Attack, oracle: FrequencyOracle) -> None:
    items = [f"item {i}" for i in range(oracle.domain_size)]
    resolved = attack.resolve(items)
    assert type(resolved) is type(attack)
    assert resolved.resolve(items) == resolved
    assert resolved.reports(oracle, 100, rng()).tobytes() == attack.reports(oracle, 100, rng()).tobytes()


def test_an_attack_is_a_value(attack: Attack) -> None:
    assert dataclasses.replace(attack) == attack
    assert hash(dataclasses.replace(attack)) == hash(attack)
    with pytest.raises(dataclasses.FrozenInstanceError):
        attack.name = "other"  # type: ignore[misc]
