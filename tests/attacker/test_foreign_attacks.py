"""Reports and supports of attacks of other authors are checked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import pytest

from ldprecover import GRR, OUE, ContractError, FrequencyOracle, ParameterError
from ldprecover.protocols import SS
from ldprecover_attacker import Attack, Plan


@dataclass(frozen=True)
class Theirs(Attack):
    """Sends the given reports."""

    name = "theirs"

    make: Callable[[int], Any] = field(default=lambda m: np.zeros(m, "<u4"))
    pi: Any = field(default_factory=lambda: np.full(8, 0.5))

    def resolve(self, items: Sequence[str]) -> Self:
        return self

    def plan(self, oracle: FrequencyOracle, rng: np.random.Generator) -> Plan:
        return Plan(send=lambda m, _: self.make(m), support=lambda _: self.pi)


def _reports(oracle: FrequencyOracle, make: Callable[[int], Any]) -> Any:
    return Theirs(make).reports(oracle, 3, np.random.default_rng(1))


@pytest.mark.parametrize(
    ("oracle", "make", "words"),
    [
        (GRR(1, 8), lambda m: np.zeros(m + 1, "<u4"), "not an array of uint32 of shape .4,."),
        (GRR(1, 8), lambda m: np.zeros(m, "<i8"), "not an array of int64"),
        (GRR(1, 8), lambda m: np.zeros((m, 1), "<u4"), "of shape .3, 1."),
        (GRR(1, 8), lambda m: [0] * m, "not .0, 0, 0."),
        (GRR(1, 8), lambda m: np.full(m, 8, "<u4"), "report 0: the item must be from 0 to 7"),
        (OUE(1, 8), lambda m: np.zeros(m, "u1"), "an array of uint8 of shape .3, 1., not"),
        (OUE(1, 7), lambda m: np.full((m, 1), 255, "u1"), "report 0: the padding bits"),
        (SS(1, 8, 2), lambda m: np.full((m, 1), 7, "u1"), "report 0: exactly 2 bits"),
    ],
)
def test_invalid_reports_raise_contract_error(
    oracle: FrequencyOracle, make: Callable[[int], Any], words: str
) -> None:
    start = f"^the attack 'theirs' made no reports of {oracle.protocol}: .*{words}"
    with pytest.raises(ContractError, match=start):
        _reports(oracle, make)


def test_valid_reports_are_not_changed() -> None:
    reports = np.arange(3, dtype="<u4")
    assert _reports(GRR(1, 8), lambda _: reports) is reports


def test_contract_error_names_the_attack() -> None:
    def boom(_: int) -> Any:
        raise RuntimeError("boom")

    def refuse(_: int) -> Any:
        raise ParameterError("not so")

    with pytest.raises(ContractError, match=r"^the attack 'theirs' raised RuntimeError: boom$"):
        _reports(GRR(1, 8), boom)
    with pytest.raises(ParameterError, match=r"^not so$"):
        _reports(GRR(1, 8), refuse)


@pytest.mark.parametrize("pi", [np.ones(1), np.full(8, 1.5), np.full(8, np.nan), None])
def test_support_has_one_share_for_each_item(pi: Any) -> None:
    with pytest.raises(ContractError, match="must be an array of 8 numbers from 0 to 1"):
        Theirs(pi=pi).gain(GRR(1, 8), np.zeros(8), 0.1, targets=[1])
