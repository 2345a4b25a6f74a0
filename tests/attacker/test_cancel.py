"""Cancel: as many targets as reports support whose pairs of targets cancel."""

import numpy as np
import pytest
from scipy.optimize import linprog
from tests.randomness import rng

from ldprecover import ParameterError, frequency_oracle
from ldprecover.crafting import crafter_of
from ldprecover.protocols import LLH
from ldprecover.protocols.laws import HITS, required
from ldprecover_attacker import Cancel
from ldprecover_attacker.cancel import cancelling_law, pair_moments

TARGETS = np.arange(5, 105, 10)


@pytest.mark.parametrize("protocol", ["oue", "sue", "olh", "ss"])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_pairs_of_honest_reports_have_mean_zero(protocol: str, epsilon: float) -> None:
    """Of users of none of the items, and of one of them. No chance in it."""
    oracle = frequency_oracle(protocol, epsilon, 102)
    hits = required(oracle.laws.hits, protocol, HITS)
    for r in (2, 3, 10):
        moments = pair_moments(oracle, r)
        own, other = (
            required(hits.other_items_law(r - 1, is_own), protocol, HITS)
            for is_own in (True, False)
        )
        holder = oracle.p * np.append(0, own) + (1 - oracle.p) * np.append(other, 0)
        assert oracle.laws.hits_of_others(TARGETS[:r]) @ moments == pytest.approx(0, abs=1e-12)
        assert holder @ moments == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("protocol", ["oue", "sue", "olh", "ss", "llh"])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 4.0])
@pytest.mark.parametrize("r", [1, 2, 6, 10])
def test_no_other_law_without_pairs_has_more_hits(protocol: str, epsilon: float, r: int) -> None:
    oracle = frequency_oracle(protocol, epsilon, 102)
    laws = crafter_of(oracle).hit_laws(TARGETS[:r], 1_000)
    hits, moments = laws @ np.arange(r + 1), laws @ pair_moments(oracle, r)
    law = cancelling_law(oracle, laws)
    assert law @ moments == pytest.approx(0, abs=1e-12)
    best = linprog(-hits, A_eq=np.stack([moments, np.ones(r + 1)]), b_eq=[0, 1])
    assert law @ hits == pytest.approx(-best.fun, abs=1e-9)


@pytest.mark.parametrize(
    ("protocol", "gain", "numbers"),
    [
        ("oue", 0.6466, {5, 6}),
        ("sue", 0.6553, {6, 7}),
        ("olh", 0.7031, {5}),
        ("ss", 0.6063, {5, 6}),
        ("llh", 0.7031, {5}),
    ],
)
def test_reports_support_two_numbers_of_targets(
    protocol: str, gain: float, numbers: set[int]
) -> None:
    """The gain at beta = .05 on ten items of 102 that nobody holds."""
    oracle, attack = frequency_oracle(protocol, 0.5, 102), Cancel(TARGETS.tolist())
    frequencies = np.where(np.isin(np.arange(102), TARGETS), 0, 1 / 92)
    assert attack.gain(oracle, frequencies, 0.05) == pytest.approx(gain, abs=1e-4)
    supports = oracle.supports(attack.reports(oracle, 500, rng()))
    assert set(supports[:, TARGETS].sum(axis=1).tolist()) == numbers


def test_rejects_targets_whose_pairs_never_cancel() -> None:
    """Under this hash a report supports one of two items, whatever its seed."""
    with pytest.raises(ParameterError, match="no llh reports cancel the pairs of these targets"):
        Cancel([0, 1]).reports(LLH(0.5, 2, 2), 1, rng())
