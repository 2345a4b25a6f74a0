"""The likelihood ratio of what a user really sends, from samples, and proof that the check would
catch a fault.

For each pair of items and each report, or class of reports that a ratio can tell apart, exact
(Clopper-Pearson) bounds on the probability under either item bound their ratio. Two claims are
tested: no ratio is shown to be above e^eps, and every ratio is shown to be below e^(eps + 0.1).
The first fails on right code once in 1e9 runs of a check. The second fails only if the bounds do
or the sample is too small, which it is not: they are within 3 % of the estimate.

Real reports are drawn from the operating system's randomness, as a Reporter draws them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy import stats

from ldprecover import GRR, OLH, OUE, FrequencyOracle
from ldprecover.protocols import HR, SS, SUE
from ldprecover.types import Reports

pytestmark = pytest.mark.statistical

N = 1_000_000  # reports of each item
FALSE_ALARM = 1e-9  # of each check, over all its bounds together
SLACK = 0.1

Perturb = Callable[[np.ndarray], Reports]

ORACLES = [GRR(1, 4), OUE(1, 3), OLH(1, 2, 4), OLH(0.5, 2, 3), SUE(1, 3), SS(1, 4, 2), HR(1, 3)]
each_oracle = pytest.mark.parametrize(
    "oracle", ORACLES, ids=lambda o: f"{o.protocol}-eps{o.epsilon:g}-g{getattr(o, 'hash_range', 0)}"
)


def outcomes(oracle: FrequencyOracle, reports: Reports) -> np.ndarray:
    """Return the class of each report, as a number: the set of items it supports.

    For GRR and OUE that is the whole report. For OLH, given the seed, the probability of a report
    depends on the item only through whether its bucket is the report's.
    """
    assert oracle.domain_size <= 8
    return np.packbits(oracle.supports(reports), axis=1, bitorder="little")[:, 0]


@dataclass(frozen=True)
class Sample:
    """Counts of n reports of each item; row v for item v."""

    n: int
    classes: np.ndarray
    """How often each class came."""
    supports: np.ndarray
    """How many of them support each item."""


def sample(oracle: FrequencyOracle, perturb: Perturb, n: int) -> Sample:
    """Draw n reports of each item."""
    classes, supports = [], []
    for v in range(oracle.domain_size):
        reports = perturb(np.full(n, v))
        classes.append(np.bincount(outcomes(oracle, reports), minlength=2**oracle.domain_size))
        supports.append(oracle.support_counts(reports))
    return Sample(n, np.array(classes), np.array(supports))


def bounds(counts: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return Clopper-Pearson bounds of every probability, FALSE_ALARM for all of them together."""
    level = FALSE_ALARM / (2 * counts.size)
    low = np.where(counts > 0, stats.beta.ppf(level, counts, n - counts + 1), 0.0)
    high = np.where(counts < n, stats.beta.isf(level, counts + 1, n - counts), 1.0)
    return low, high


def shown_ratio(samples: Sample) -> float:
    """Return the largest proven ratio of a class's probabilities under two items."""
    low, high = bounds(samples.classes, samples.n)
    return float((low.max(axis=0) / high.min(axis=0)).max())


def possible_ratio(samples: Sample) -> float:
    """Return the largest ratio that the sample cannot exclude, over the observed classes."""
    low, high = bounds(samples.classes, samples.n)
    classes_seen = samples.classes.any(axis=0)
    return float((high.max(axis=0)[classes_seen] / low.min(axis=0)[classes_seen]).max())


def is_calibrated(oracle: FrequencyOracle, samples: Sample) -> bool:
    """Return whether p, and q of each other item, lie within their Clopper-Pearson bounds."""
    d = oracle.domain_size
    low, high = bounds(samples.supports, samples.n)
    expected = np.full((d, d), oracle.q) + (oracle.p - oracle.q) * np.eye(d)
    return bool(((low <= expected) & (expected <= high)).all())


@each_oracle
def test_no_report_exceeds_epsilon_and_p_and_q_are_right(oracle: FrequencyOracle) -> None:
    """Each check has its own false-alarm rate."""
    samples = sample(oracle, oracle.perturb, N)
    assert shown_ratio(samples) <= math.exp(oracle.epsilon)
    assert possible_ratio(samples) <= math.exp(oracle.epsilon + SLACK)
    assert is_calibrated(oracle, samples)


@pytest.mark.parametrize("protocol", ["grr", "oue", "olh", "sue", "ss", "hr"])
def test_single_reports_are_as_private(protocol: str) -> None:
    """As a Reporter makes them: 2,000 calls an item, operating system's randomness; one oracle of
    each protocol.
    """
    oracle = next(oracle for oracle in ORACLES if oracle.protocol == protocol)

    def one_by_one(items: np.ndarray) -> Reports:
        return np.concatenate([oracle.perturb([item]) for item in items.tolist()])

    samples = sample(oracle, one_by_one, 2_000)
    assert shown_ratio(samples) <= math.exp(oracle.epsilon)
    assert is_calibrated(oracle, samples)


@each_oracle
def test_mechanism_with_larger_epsilon_is_caught(oracle: FrequencyOracle) -> None:
    """The same protocol at 1.2 epsilon, held to epsilon. Missed in under 1e-9 runs: the bounds
    leave 10 sd.
    """
    greedy, rng = replace(oracle, epsilon=1.2 * oracle.epsilon), np.random.default_rng(22)
    samples = sample(oracle, lambda items: greedy.perturb(items, rng), N)
    assert shown_ratio(samples) > math.exp(oracle.epsilon)
    assert not is_calibrated(oracle, samples)


def test_calibration_catches_value_kept_too_rarely() -> None:
    """p = e^eps/(d + e^eps) is private enough, and biased: only the second check sees it."""
    oracle, rng = GRR(1, 4), np.random.default_rng(24)

    def timid(items: np.ndarray) -> Reports:
        is_kept = rng.random(items.size) < math.e / (4 + math.e)
        return np.where(is_kept, items, (items + rng.integers(1, 4, items.size)) % 4).astype("<u4")

    samples = sample(oracle, timid, N)
    assert shown_ratio(samples) <= math.e
    assert not is_calibrated(oracle, samples)


def test_olh_seeds_do_not_depend_on_item() -> None:
    """The four bytes of the seeds of two items, 2 x 256 tables: chi-squared, 1e-9/4 each.

    Bytes that are 2.3 % likelier for one item are missed once in 100.
    """
    oracle = OLH(1, 2, 4)
    samples = [oracle.perturb(np.full(N, v))["seed"] for v in (0, 1)]
    for byte in range(4):
        table = [
            np.bincount(seeds >> np.uint32(8 * byte) & np.uint32(0xFF), minlength=256)
            for seeds in samples
        ]
        assert stats.chi2_contingency(table).pvalue > FALSE_ALARM / 4


def test_oue_bits_are_independent() -> None:
    """Correlations of 130 bits, of one report and of it and the next: 25,285 normal scores, 1e-9
    for all.

    A word of randomness used twice would show; a correlation of .031 is missed once in 100.
    """
    oracle, d, n = OUE(1, 130), 130, 100_000
    rows = oracle.perturb(np.arange(n) % d)
    bits = oracle.supports(rows).astype(np.float32)
    probability = np.full((n, d), oracle.q, np.float32)
    probability[np.arange(n), np.arange(n) % d] = oracle.p
    scores = (bits - probability) / np.sqrt(probability * (1 - probability))
    within = (scores.T @ scores)[np.triu_indices(d, 1)]
    between = (scores[:-1].T @ scores[1:]).ravel()
    greatest = max(np.abs(within).max(), np.abs(between).max()) / math.sqrt(n)
    assert greatest <= stats.norm.isf(FALSE_ALARM / 2 / (within.size + between.size))
