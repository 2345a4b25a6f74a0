"""A protocol of somebody else's: one class, entered in the table, and everything takes it."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import ArrayLike

from ldprecover import ParameterError, RecoveryRequest, RoundExport, RoundParameters, Tally, recover
from ldprecover.evidence.alarms import raise_alarms
from ldprecover.protocols import (
    PROTOCOLS,
    SS,
    OwnParameter,
    Traits,
    UnaryEncoding,
    default_subset_size,
)
from ldprecover.recovery import METHODS
from ldprecover.reports import ReportSource
from ldprecover.types import Reports


@dataclass(frozen=True)
class Few(UnaryEncoding):
    """Every report is a random set of `few` items, with probability p one that holds the user's
    own.
    """

    few: int

    protocol = "few"
    title = "a few items"
    traits = Traits(extremal=True)
    parameter = OwnParameter("few", 1, 99_999, "Items of a report.", default_subset_size)

    @property
    def fixed_size(self) -> int:
        return self.few

    @property
    def p(self) -> float:
        return self._sets.p

    @property
    def q(self) -> float:
        return self._sets.q

    @property
    def _sets(self) -> SS:
        return SS(self.epsilon, self.domain_size, self.few)

    def perturb(self, items: ArrayLike, rng: np.random.Generator | None = None) -> Reports:
        return self._sets.perturb(items, rng)


@pytest.fixture(autouse=True)
def _entered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROTOCOLS, "few", Few)


def test_own_parameter_is_stored_like_a_hash_range() -> None:
    items = tuple("abcdef")
    parameters = RoundParameters.named("few", 1.0, items, {"few": 3, "hash_range": None})
    assert (parameters.oracle, parameters.own) == (Few(1.0, 6, 3), {"few": 3})
    assert RoundParameters("few", 1.0, items).parameter == 2
    with pytest.raises(ParameterError, match="hash_range belongs to olh, llh; few has none"):
        RoundParameters.named("few", 1.0, items, {"hash_range": 3})
    with pytest.raises(ParameterError, match="few belongs to few; olh has none"):
        RoundParameters.named("olh", 1.0, items, {"few": 3})
    export = RoundExport(round="R1", name="x", parameters=parameters, tally=Tally.empty(6))
    assert RoundExport.from_dict(export.to_dict()).parameters == parameters


def test_alarms_and_recoveries_accept_or_reject_it_by_name() -> None:
    oracle, rng = Few(1.0, 20, 5), np.random.default_rng(2)
    reports = oracle.perturb(rng.integers(20, size=1000), rng)
    tally = Tally.of(oracle, reports)
    assert [alarm.name for alarm in raise_alarms(oracle, tally, ReportSource(oracle, reports))] == [
        "excess"
    ]
    refused = {}
    for name, method in METHODS.items():
        targets = (3,) if "targets" in method.uses else ()
        try:
            result = recover(oracle, reports, RecoveryRequest(name, targets=targets), tally=tally)
        except ParameterError as error:
            refused[name] = str(error)
        else:
            assert np.isfinite(result.recovered).all()
    assert refused == {
        "conditional-probability": "conditional-probability: few lacks a likelihood of its reports",
        "diffstats": "diffstats: every few report supports 5 items, so sizes tell nothing",
        "fiad": "fiad: how honest few reports support sets is not known",
    }
