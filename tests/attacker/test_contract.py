"""What holds for every attack, report model and protocol."""

import copy
import dataclasses

import numpy as np
import pytest

from ldprecover import FrequencyOracle, ParameterError, Tally
from ldprecover.protocols import wire
from ldprecover_attacker import Attack


def rng(seed: int = 7) -> np.random.Generator:
    return np.random.default_rng(seed)


def send(
    oracle: FrequencyOracle, attack: Attack, generator: np.random.Generator
) -> tuple[bytes, bytes | None]:
    """Return 200 reports, and the support they all have where nothing but a hash seed can tell them
    apart.
    """
    pi = attack.support(oracle, copy.deepcopy(generator))
    certain = np.isin(pi, (0, 1)).all() and not oracle.traits.seeded
    return attack.reports(oracle, 200, generator).tobytes(), pi.tobytes() if certain else None


def are_bound_to_agree(one: bytes | None, other: bytes | None) -> bool:
    return one is not None and one == other


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
    assert (
        attack.reports(oracle, 200, rng()).tobytes() == attack.reports(oracle, 200, rng()).tobytes()
    )


def test_another_seed_gives_other_reports(attack: Attack, oracle: FrequencyOracle) -> None:
    (one, always), (other, ever) = (send(oracle, attack, rng(seed)) for seed in (7, 8))
    assert (one == other) is are_bound_to_agree(always, ever)


def test_one_generator_gives_two_calls_different_reports(
    attack: Attack, oracle: FrequencyOracle
) -> None:
    generator = rng()
    (one, always), (other, ever) = (send(oracle, attack, generator) for _ in range(2))
    assert (one == other) is are_bound_to_agree(always, ever)


def test_the_global_generator_is_left_alone(attack: Attack, oracle: FrequencyOracle) -> None:
    before = np.random.get_state(legacy=False)["state"]["key"].copy()
    attack.reports(oracle, 20, rng())
    after = np.random.get_state(legacy=False)["state"]["key"]
    assert np.array_equal(before, after)


def test_rejects_invalid_number_of_users(attack: Attack, oracle: FrequencyOracle) -> None:
    for m in (-1, 2.0, "3", True, None):
        with pytest.raises(ParameterError, match="must be an integer from 0"):
            attack.reports(oracle, m, rng())  # type: ignore[arg-type]


def test_resolving_changes_no_report(attack: Attack, oracle: FrequencyOracle) -> None:
    items = [f"item {i}" for i in range(oracle.domain_size)]
    resolved = attack.resolve(items)
    assert type(resolved) is type(attack)
    assert resolved.resolve(items) == resolved
    assert (
        resolved.reports(oracle, 100, rng()).tobytes()
        == attack.reports(oracle, 100, rng()).tobytes()
    )


def test_support_is_a_share_of_reports_for_each_item(
    attack: Attack, oracle: FrequencyOracle
) -> None:
    pi = attack.support(oracle, rng(), m=100)
    assert pi.shape == (oracle.domain_size,)
    assert pi.min() >= 0
    assert pi.max() <= 1 + 1e-12
    assert attack.resolve([str(v) for v in range(pi.size)]).support(
        oracle, rng(), m=100
    ) == pytest.approx(pi)
    assert attack.support_sum(oracle, rng(), m=100) == pytest.approx(
        (pi.sum() - oracle.q * pi.size) / (oracle.p - oracle.q)
    )


def test_expecting_needs_a_number_of_users(attack: Attack, oracle: FrequencyOracle) -> None:
    for m in (0, 2.0, True, None):
        with pytest.raises(ParameterError, match="must be an integer from 1"):
            attack.support(oracle, rng(), m=m)  # type: ignore[arg-type]


def test_an_attack_is_a_value(attack: Attack) -> None:
    assert dataclasses.replace(attack) == attack
    assert hash(dataclasses.replace(attack)) == hash(attack)
    with pytest.raises(dataclasses.FrozenInstanceError):
        attack.name = "other"  # type: ignore[misc]
