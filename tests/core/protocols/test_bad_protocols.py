"""Protocols that are not private, or not what they say: the checks fail for each, with words."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from ldprecover.protocols import GRR, HR, OUE, PROTOCOLS, FrequencyOracle, Traits, frequency_oracle
from ldprecover.protocols.oracle import MAX_EPSILON, MIN_EPSILON
from ldprecover.testing import CHECKS, check_protocol
from ldprecover.types import Reports


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
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, FrequencyOracle) else None,
)
def test_bad_protocol_fails_with_an_explanation(
    oracle: FrequencyOracle, check: str, words: str
) -> None:
    with pytest.raises(AssertionError, match=words):
        CHECKS[check](oracle, np.random.default_rng(1))
    with pytest.raises(
        AssertionError, match=f"^{oracle.protocol} fails the check [a-z_]+. [A-Z].* It is not so: "
    ):
        check_protocol(oracle)


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
