"""Protocols that break the contract: a check fails for each, and says why."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from ldprecover import ParameterError, ReportError, Tally
from ldprecover.crafting import crafter_of
from ldprecover.crafting.bit_vectors import BitCrafter
from ldprecover.protocols import (
    GRR,
    HR,
    OLH,
    OUE,
    PROTOCOLS,
    FrequencyOracle,
    Traits,
    frequency_oracle,
)
from ldprecover.protocols.laws import Laws
from ldprecover.protocols.oracle import ALL_ITEMS, MAX_EPSILON, MIN_EPSILON, Items
from ldprecover.protocols.unary import BitsForm
from ldprecover.protocols.wire import IntegerForm
from ldprecover.reports import TallySampler, tally_sampler
from ldprecover.testing import CHECKS, check_protocol
from ldprecover.types import BoolArray, Int64Array, Reports, UInt32Array


@dataclass(frozen=True)
class OfThree(GRR):
    """Spends three times epsilon, and says so in p and q."""

    @property
    def q(self) -> float:
        return 1 / (self.domain_size - 1 + math.exp(3 * self.epsilon))

    @property
    def p(self) -> float:
        return math.exp(3 * self.epsilon) * self.q

    def perturb(self, items: ArrayLike, rng: np.random.Generator | None = None) -> Reports:
        return GRR(3 * self.epsilon, self.domain_size).perturb(items, rng)


@dataclass(frozen=True)
class Fixed(GRR):
    """Draws from the same seed wherever there is no generator."""

    def perturb(self, items: ArrayLike, rng: np.random.Generator | None = None) -> Reports:
        return super().perturb(items, rng or np.random.default_rng(0))


@dataclass(frozen=True)
class Deaf(GRR):
    """Does not draw from the generator."""

    def perturb(self, items: ArrayLike, rng: np.random.Generator | None = None) -> Reports:
        return super().perturb(items)


@dataclass(frozen=True)
class Off(OUE):
    """Has p 3 % too high."""

    @property
    def p(self) -> float:
        return 0.5 * 1.03


@dataclass(frozen=True)
class OffAndQuiet(OUE):
    """Has p 3 % too low: within epsilon, and every estimate is biased."""

    @property
    def p(self) -> float:
        return 0.5 * 0.97


@dataclass(frozen=True)
class Together(OUE):
    """Draws the first and the last bit from one word for users of the first item: p and q of each
    alone are right.
    """

    def perturb(self, items: ArrayLike, rng: np.random.Generator | None = None) -> Reports:
        bits = self.supports(super().perturb(items, rng))
        word = (rng or np.random.default_rng()).random(len(bits))
        first = np.asarray(items) == 0
        bits[first, 0] = word[first] < self.p
        bits[first, -1] = word[first] < self.q
        return np.packbits(bits, axis=1, bitorder="little")


@dataclass(frozen=True)
class OneItem(HR):
    """Says that every report supports one item."""

    traits = Traits(one_item=True)


@dataclass(frozen=True)
class Breaks(GRR):
    """Raises."""

    def supports(self, reports: Reports, items: Any = None) -> Any:
        raise RuntimeError("boom")


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


ERRORS = (AssertionError, IndexError, ReportError)


@pytest.mark.parametrize(
    ("oracle", "check", "words"),
    [
        (
            OfThree(1.0, 12),
            "epsilon",
            "p/q, differs by the factor 20.0855, and e.epsilon is 2.71828",
        ),
        (Fixed(1.0, 12), "randomness", "without a generator makes the same reports again"),
        (Deaf(1.0, 12), "randomness", "must draw from the generator that it is given"),
        (Off(1.0, 12), "epsilon", "p.1-q./.q.1-p.., differs by the factor 2.88"),
        (OffAndQuiet(1.0, 12), "support_probabilities", "not in the shares .0.485 "),
        (
            OneItem(1.0, 12),
            "reports",
            "every report must support 1, as the traits or fixed_size say, and some support",
        ),
        (Credulous(1.0, 20), "packed_form", None),
        (Careless(1.0, 20), "json_form", None),
        (Forgetful(1.0, 20, 4), "summary", None),
        (Sure(1.0, 20), "honest_tally", None),
        (Boastful(1.0, 20), "likelihood", None),
        (Entangled(1.0, 20), "independence", None),
        (Anonymous(1.0, 20), "seeds", None),
        (Repetitive(1.0, 20, 4), "seeds", None),
        (Greedy(1.0, 20), "crafted", None),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, FrequencyOracle) else None,
)
def test_bad_protocol_fails_with_an_explanation(
    oracle: FrequencyOracle, check: str, words: str | None
) -> None:
    with pytest.raises(ERRORS, match=words):
        CHECKS[check](oracle, np.random.default_rng(1))
    with pytest.raises(ERRORS) as failed:
        check_protocol(oracle)
    (text,) = getattr(failed.value, "__notes__", failed.value.args)
    assert re.match(f"{oracle.protocol} fails the check [a-z_]+. [A-Z].*", text)
    assert type(failed.value) is not AssertionError or " It is not so: " in text


def test_dependent_bits_of_two_items_are_detected() -> None:
    """Supporting the last item without the first has probability 0 under the first item, (1-q)/2
    under the last.
    """
    with pytest.raises(
        AssertionError, match="one, both or neither of two items, differs by a factor of at least"
    ):
        CHECKS["support_probabilities"](Together(1.0, 12), np.random.default_rng(1))


def test_protocol_exceptions_name_the_check() -> None:
    with pytest.raises(RuntimeError, match="boom") as raised:
        check_protocol(Breaks(1.0, 12))
    assert "grr fails the check reports. Reports are of one type" in raised.value.__notes__[0]


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("epsilon", "d"), [(MIN_EPSILON, 2), (MAX_EPSILON, 2), (MAX_EPSILON, 40)])
def test_the_protocols_here_pass_at_the_ends_of_their_ranges(
    protocol: str, epsilon: float, d: int
) -> None:
    for check in ("epsilon", "randomness", "support_probabilities"):
        CHECKS[check](frequency_oracle(protocol, epsilon, d), np.random.default_rng(2))
