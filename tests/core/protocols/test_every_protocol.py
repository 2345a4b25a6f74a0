"""Every protocol keeps the contract, and the checks find those that do not."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from ldprecover import (
    GRR,
    OLH,
    OUE,
    FrequencyOracle,
    ParameterError,
    ReportError,
    Tally,
    frequency_oracle,
)
from ldprecover.crafting import crafter_of
from ldprecover.crafting.bit_vectors import BitCrafter
from ldprecover.protocols import PROTOCOLS, Traits
from ldprecover.protocols.laws import Laws
from ldprecover.protocols.oracle import ALL_ITEMS, Items
from ldprecover.protocols.unary import BitsForm
from ldprecover.protocols.wire import IntegerForm
from ldprecover.reports import TallySampler, tally_sampler
from ldprecover.testing import CHECKS, check_protocol
from ldprecover.types import BoolArray, Int64Array, Reports, UInt32Array


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "d"), [(0.5, 6), (2.0, 17), (1.0, 2)])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_protocol_keeps_the_contract(protocol: str, epsilon: float, d: int) -> None:
    check_protocol(frequency_oracle(protocol, epsilon, d))


class CredulousForm(IntegerForm):
    """Any item may be sent."""

    def check(self, reports: Reports) -> None:
        pass


@dataclass(frozen=True)
class Credulous(GRR):
    """Any item may be sent."""

    @cached_property
    def wire(self) -> IntegerForm:
        return CredulousForm(super().wire.forms, self.domain_size, "item")

    def supports(self, reports: Reports, items: Items = ALL_ITEMS) -> BoolArray:
        return super().supports(reports % self.domain_size, items)


class CarelessForm(BitsForm):
    """Any character is a bit."""

    def join(self, values: Sequence[list[Any]]) -> Reports:
        return super().join([[str(row).replace("2", "1") for row in values[0]]])


@dataclass(frozen=True)
class Careless(OUE):
    """Any character is a bit."""

    @cached_property
    def wire(self) -> BitsForm:
        return CarelessForm(self.domain_size, None)


@dataclass(frozen=True)
class Forgetful(OLH):
    """A summary is never of more than a hundred reports."""

    def summarise(self, reports: Reports) -> Int64Array:
        return super().summarise(reports[:100])


class SureSampler(TallySampler):
    """Its tallies have no noise."""

    def draw_honest(self, users: Int64Array, rng: np.random.Generator) -> Tally:
        n, p, q = int(users.sum()), self.oracle.p, self.oracle.q
        return Tally(np.rint(users * p + (n - users) * q).astype(np.int64), n)


@dataclass(frozen=True)
class Sure(OUE):
    """Its simulated tally has no noise."""


tally_sampler.register(Sure, SureSampler)


@dataclass(frozen=True)
class Boastful(GRR):
    """Its likelihoods differ by less than it says."""

    @property
    def laws(self) -> Laws:
        return replace(super().laws, likelihood_ratio=math.exp(self.epsilon / 2))


@dataclass(frozen=True)
class Entangled(GRR):
    """Its bits are not independent."""

    traits = Traits(one_item=True, independent_bits=True, extremal=True)


@dataclass(frozen=True)
class Anonymous(GRR):
    """It refuses without its name."""

    def seeds(self, reports: Reports) -> UInt32Array:
        raise ParameterError("no")


@dataclass(frozen=True)
class Repetitive(OLH):
    """All its users have one seed."""

    def encode(self, items: ArrayLike, rng: np.random.Generator | None = None) -> Reports:
        reports = super().encode(items, rng)
        reports["seed"] = 7
        reports["bucket"] = self.buckets(reports["seed"], items)
        return reports


class GreedyCrafter(BitCrafter):
    """Its crafted reports support less than it says."""

    def expected_hits(self, r: int, *arguments: Any, **options: Any) -> tuple[float, float]:
        return float(r), 0.0


@dataclass(frozen=True)
class Greedy(OUE):
    """Its crafter claims too little support."""


crafter_of.register(Greedy, GreedyCrafter)


BROKEN: list[tuple[Callable[[], FrequencyOracle], str]] = [
    (lambda: Credulous(1.0, 20), "packed_form"),
    (lambda: Careless(1.0, 20), "json_form"),
    (lambda: Forgetful(1.0, 20, 4), "summary"),
    (lambda: Sure(1.0, 20), "honest_tally"),
    (lambda: Boastful(1.0, 20), "likelihood"),
    (lambda: Entangled(1.0, 20), "independence"),
    (lambda: Anonymous(1.0, 20), "seeds"),
    (lambda: Repetitive(1.0, 20, 4), "seeds"),
    (lambda: Greedy(1.0, 20), "crafted"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("broken", "check"), BROKEN, ids=[check for _, check in BROKEN])
def test_a_protocol_that_breaks_the_contract_is_found(
    broken: Callable[[], FrequencyOracle], check: str
) -> None:
    with pytest.raises((AssertionError, IndexError, ReportError)):
        CHECKS[check](broken(), np.random.default_rng(1))
    with pytest.raises((AssertionError, IndexError, ReportError)):
        check_protocol(broken())
