"""What an attack sends is looked at before it travels, whoever wrote it."""

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
    """Sends what it is told to send."""

    name = "theirs"

    made: Callable[[int], Any] = field(default=lambda m: np.zeros(m, "<u4"))
    said: Any = field(default_factory=lambda: np.full(8, 0.5))

    def resolve(self, items: Sequence[str]) -> Self:
        return self

    def plan(self, oracle: FrequencyOracle, rng: np.random.Generator) -> Plan:
        return Plan(send=lambda m, _: self.made(m), support=lambda _: self.said)


def _reports(oracle: FrequencyOracle, made: Callable[[int], Any]) -> Any:
    return Theirs(made).reports(oracle, 3, np.random.default_rng(1))


@pytest.mark.parametrize(
    ("oracle", "made", "words"),
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
    oracle: FrequencyOracle, made: Callable[[int], Any], words: str
) -> None:
    start = f"^the attack 'theirs' made no reports of {oracle.protocol}: .*{words}"
    with pytest.raises(ContractError, match=start):
        _reports(oracle, made)


def test_reports_as_they_must_be_are_left_as_they_are() -> None:
    made = np.arange(3, dtype="<u4")
    assert _reports(GRR(1, 8), lambda _: made) is made


def test_contract_error_names_the_attack() -> None:
    def boom(_: int) -> Any:
        raise RuntimeError("boom")

    def refuse(_: int) -> Any:
        raise ParameterError("not so")

    with pytest.raises(ContractError, match=r"^the attack 'theirs' raised RuntimeError: boom$"):
        _reports(GRR(1, 8), boom)
    with pytest.raises(ParameterError, match=r"^not so$"):
        _reports(GRR(1, 8), refuse)


@pytest.mark.parametrize("said", [np.ones(1), np.full(8, 1.5), np.full(8, np.nan), None])
def test_support_has_one_share_for_each_item(said: Any) -> None:
    with pytest.raises(ContractError, match="must be an array of 8 numbers from 0 to 1"):
        Theirs(said=said).gain(GRR(1, 8), np.zeros(8), 0.1, targets=[1])
