"""What every protocol's crafted reports support, against what the protocol says that they
support.
"""

import math

import numpy as np
import pytest
from tests.randomness import rng
from tests.toy_protocols import Bare, Subsets

from ldprecover import OUE, FrequencyOracle, ParameterError, frequency_oracle
from ldprecover.crafting import Aim, Strategy, crafter_of
from ldprecover.crafting.crafter import Crafter
from ldprecover.distributions import binomial_law
from ldprecover.protocols import PROTOCOLS
from ldprecover.testing.tolerances import assert_counts
from ldprecover.types import FloatArray, Reports

D, M = 24, 4_000
AIMS: tuple[Aim, ...] = ("most", "balanced", "honest")
CASES = [([3], 1), ([2, 4, 6], 3), ([1, 2, 3, 9, 20, 22, 23], 4), (list(range(D)), 7)]


ORACLES = [frequency_oracle(name, 1.0, D) for name in PROTOCOLS] + [Subsets(1.0, D)]
over_oracles = pytest.mark.parametrize("oracle", ORACLES, ids=lambda oracle: oracle.protocol)


def assert_expected(oracle: FrequencyOracle, reports: Reports, pi: FloatArray) -> None:
    """Each item's count within Bernstein's bound: an item fails once in 10^9.

    8.5 deviations are missed once in 100.
    """
    oracle.wire.check(reports)
    assert pi.shape == (D,)
    assert_counts(oracle.supports(reports).sum(axis=0), pi, M)


def subsets(items: list[int], r: int) -> np.ndarray:
    """Return M random sets of r of the items."""
    order = rng(3).random((M, len(items))).argsort(axis=1)[:, :r]
    return np.array(items)[order]


@pytest.mark.slow
@over_oracles
@pytest.mark.parametrize("aim", AIMS)
@pytest.mark.parametrize(("targets", "r"), CASES)
def test_crafted_reports_support_what_is_expected(
    oracle: FrequencyOracle, aim: Aim, targets: list[int], r: int
) -> None:
    crafter, included = crafter_of(oracle), np.zeros(D)
    included[targets] = r / len(targets)
    reports = crafter.craft(subsets(targets, r), rng(), Strategy(aim, 20))
    if crafter.model == "solved" and math.comb(len(targets), r) > 16_384:
        with pytest.raises(ParameterError, match="too many"):
            crafter.crafted_support(included, r, Strategy(aim))
        oracle.wire.check(reports)
        return
    assert_expected(oracle, reports, crafter.crafted_support(included, r, Strategy(aim, 20), M))


@over_oracles
@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_reports_by_coins_support_what_is_expected(oracle: FrequencyOracle, rate: float) -> None:
    crafter, targets = crafter_of(oracle), np.array([5, 0, 17, 11])
    law = binomial_law(4, rate)
    if type(crafter).hit_reports is Crafter.hit_reports:
        with pytest.raises(ParameterError, match=f"^{oracle.protocol} lacks reports that support"):
            crafter.hit_reports(targets, law, 20)
        return
    craft, support = crafter.hit_reports(targets, law, 20)
    assert_expected(oracle, craft(M, rng()), support(M))


@pytest.mark.parametrize("size", [D, D / 2, 1, 0])
def test_a_bit_vector_has_the_requested_size(size: float) -> None:
    assert (
        OUE(1.0, D).supports(crafter_of(OUE(1.0, D)).report_of_size(size, rng(), 20)).sum() == size
    )


def test_a_protocol_without_a_crafter_is_named() -> None:
    oracle = Bare(1.0, D)
    for call in (
        lambda: crafter_of(oracle).uniform_reports(1, rng()),
        lambda: crafter_of(oracle).report_of_size(3, rng(), 20),
        lambda: crafter_of(oracle).log_likelihood(oracle.encode([0]), 0),
    ):
        with pytest.raises(ParameterError, match=r"^bare lacks "):
            call()
