"""The contract of every attack: each with one protocol, and each protocol with some attack."""

import copy

import numpy as np
import pytest
from tests.attacker.conftest import ATTACKS, CASES, ORACLES
from tests.randomness import rng

from ldprecover import FrequencyOracle, ParameterError
from ldprecover_attacker import Attack

DIAGONAL = [
    next(
        CASES[name]
        for oracle in ORACLES[i % len(ORACLES) :] + ORACLES
        if (name := f"{attack}-{oracle}") in CASES
    )
    for i, attack in enumerate(ATTACKS)
]
each_case = pytest.mark.parametrize(("oracle", "attack"), DIAGONAL, ids=repr)


def test_each_protocol_has_a_case() -> None:
    assert {oracle for oracle, _ in DIAGONAL} == set(ORACLES)


def send(
    oracle: FrequencyOracle, attack: Attack, generator: np.random.Generator
) -> tuple[bytes, bytes | None]:
    """Return 200 reports, and the support that all of them have if no chance is left in it."""
    pi = attack.support(oracle, copy.deepcopy(generator))
    is_certain = np.isin(pi, (0, 1)).all() and not oracle.traits.seeded
    return attack.reports(oracle, 200, generator).tobytes(), pi.tobytes() if is_certain else None


@each_case
def test_other_generator_states_give_other_reports(oracle: FrequencyOracle, attack: Attack) -> None:
    """Except where both states give the same certain support."""
    generator = rng()
    first, certain = send(oracle, attack, generator)
    for state in (generator, rng(8)):
        other, other_certain = send(oracle, attack, state)
        assert (other == first) is (certain is not None and certain == other_certain)


@each_case
def test_resolving_changes_no_report(oracle: FrequencyOracle, attack: Attack) -> None:
    items = [f"item {i}" for i in range(oracle.domain_size)]
    resolved = attack.resolve(items)
    assert type(resolved) is type(attack)
    assert resolved.resolve(items) == resolved
    for m in (0, 1, 333):
        reports = attack.reports(oracle, m, rng())
        assert resolved.reports(oracle, m, rng()).tobytes() == reports.tobytes()
    pi = attack.support(oracle, rng(), m=100)
    assert resolved.support(oracle, rng(), m=100) == pytest.approx(pi)
    assert attack.support_sum(oracle, rng(), m=100) == pytest.approx(
        (pi.sum() - oracle.q * pi.size) / (oracle.p - oracle.q)
    )


@pytest.mark.parametrize("m", [-1, 2.0, "3", True, None])
def test_rejects_invalid_number_of_users(m: int) -> None:
    oracle, attack = DIAGONAL[0]
    with pytest.raises(ParameterError, match="must be an integer from 0"):
        attack.reports(oracle, m, rng())
    with pytest.raises(ParameterError, match="must be an integer from 1"):
        attack.support(oracle, rng(), m=m)
    with pytest.raises(ParameterError, match="must be an integer from 1"):
        attack.support(oracle, rng(), m=0)


@each_case
def test_reports_that_memory_cannot_hold_are_an_error(
    oracle: FrequencyOracle, attack: Attack
) -> None:
    with pytest.raises(ParameterError, match="users must be at most"):
        attack.reports(oracle, 10**12, rng())
