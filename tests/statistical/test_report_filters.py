"""The filters on honest reports: nothing is dropped, and scores of pairs follow their law.

A pair's score is normal of mean 0 and variance 1, nearly. Of 2,500 symmetric matrices of such
scores one had a set that scores above 8, and beyond 4 the logarithm of how many do falls by one in
1.5: a clean round has a suspicious set once in 2,000 times, so that one of the 32 scans here has in
1.6 % of all seeds. That reports are dropped needs far more; in 256 rounds of other seeds none were,
and no set was suspicious.
"""

import math
from functools import cache

import numpy as np
import pytest

from ldprecover import OLH, OUE, FrequencyOracle
from ldprecover.recovery import ReportSource
from ldprecover.recovery.sample import Sample
from ldprecover.recovery.unmixing.filters.pair_scan import best_set, pair_scores
from ldprecover.recovery.unmixing.filters.report_filters import filter_reports

pytestmark = pytest.mark.statistical

D, N = 102, 20_000
ORACLES: dict[str, FrequencyOracle] = {"oue": OUE(0.5, D), "olh": OLH(0.5, D, 3)}
ITEMS = np.arange(64)
SHAPES = {
    "flat": np.ones(D),
    "zipf": 1 / np.arange(1, D + 1) ** 1.5,
    "geometric": 0.9 ** np.arange(D),
    "one item": np.array([0.9, *[0.1 / (D - 1)] * (D - 1)]),
}
ROUNDS = 4  # of each shape


@cache
def honest(protocol: str, shape: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng([90, seed, len(shape)])
    weights = SHAPES[shape] / SHAPES[shape].sum()
    return ORACLES[protocol].perturb(rng.choice(D, N, p=weights), rng)


every_protocol = pytest.mark.parametrize("protocol", ORACLES)


@every_protocol
@pytest.mark.parametrize("shape", SHAPES)
def test_filters_spare_honest_reports(protocol: str, shape: str) -> None:
    for seed in range(ROUNDS):
        result = filter_reports(ReportSource(ORACLES[protocol], honest(protocol, shape, seed)))
        assert (result.n, result.suspects, result.dropped, result.notes) == (N, {}, (), ())


@every_protocol
@pytest.mark.parametrize("shape", SHAPES)
def test_scores_of_pairs_are_standard_normal(protocol: str, shape: str) -> None:
    """8,064 scores a case: their mean square is within 6.1 sqrt(2/8064) of 1 but once in 1e9, their
    mean within 6.1/90.

    The scores of pairs that share an item are uncorrelated. Half a deviation more is for the median
    taken off.
    """
    oracle = ORACLES[protocol]
    pairs = [
        Sample(oracle, honest(protocol, shape, seed)).pair_counts(ITEMS) for seed in range(ROUNDS)
    ]
    scores = [pair_scores(counts, oracle) for counts in pairs]
    entries = np.concatenate([of_round[np.triu_indices(64, 1)] for of_round in scores])
    assert abs(entries.mean()) < 6.6 / math.sqrt(entries.size)
    assert abs((entries**2).mean() - 1) < 6.6 * math.sqrt(2 / entries.size)
    assert max(best_set(of_round)[1] for of_round in scores) < 8
