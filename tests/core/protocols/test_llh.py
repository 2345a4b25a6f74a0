"""Linear local hashing: its hash family, counts and parameters."""

import itertools
import math

import numpy as np
import pytest

from ldprecover import OUE, ParameterError, ReportError, Tally
from ldprecover.counting import linear_hashing
from ldprecover.evidence.alarms import raise_alarms
from ldprecover.protocols import LLH, frequency_oracle
from ldprecover.reports import tally_sampler
from ldprecover.testing.tolerances import assert_follows

FAMILIES = [(2, 2), (5, 2), (9, 3), (102, 3), (60, 7), (23, 23)]
"""Number of items, hash range."""

families = pytest.mark.parametrize(("d", "g"), FAMILIES)


def every_report(oracle: LLH) -> np.ndarray:
    return np.arange(oracle.summary_size, dtype="<u4")


@families
def test_two_items_share_a_bucket_under_one_in_g_seeds(d: int, g: int) -> None:
    oracle = LLH(1.0, d, g)
    seeds = np.arange(oracle.seed_count)
    buckets = oracle.buckets(seeds[:, None], np.arange(d))
    some = np.random.default_rng(1).permutation(d)[:12].tolist()
    for v, w in itertools.combinations(some, 2):
        assert np.count_nonzero(buckets[:, v] == buckets[:, w]) * g == oracle.seed_count


@families
def test_sums_of_small_and_large_arrays_agree(
    d: int, g: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the bit, whichever way they are computed."""
    oracle, rng = LLH(1.0, d, g), np.random.default_rng(2)
    weights, values = rng.random(oracle.summary_size), rng.random(oracle.seed_count)

    def sums() -> tuple[bytes, bytes]:
        of_items = linear_hashing.support_sums(weights, g, oracle.digits)
        return of_items.tobytes(), linear_hashing.bucket_sums(values, g, oracle.digits).tobytes()

    first = sums()
    monkeypatch.setattr(linear_hashing, "_SMALL", 1 << 20 if g == 23 else 0)
    assert sums() == first


def test_counts_are_exact_for_any_number_of_reports() -> None:
    oracle = LLH(1.0, 102, 3)
    summary = np.zeros(oracle.summary_size, np.int64)
    summary[[0, 1, 700]] = 10**12, 10**12 - 1, 7
    expected = sum(
        int(summary[x]) * oracle.supports(np.array([x], "<u4"))[0].astype(np.int64)
        for x in (0, 1, 700)
    )
    assert np.array_equal(oracle.counts_from(summary), expected)


@families
def test_report_sizes_are_counted_without_the_reports(d: int, g: int) -> None:
    oracle = LLH(1.0, d, g)
    reports = every_report(oracle)
    assert np.array_equal(oracle.support_sizes(reports), oracle.supports(reports).sum(axis=1))
    weights = np.random.default_rng(1).dirichlet(np.ones(d))
    np.testing.assert_allclose(
        oracle.supported_mass(reports, weights), oracle.supports(reports) @ weights, atol=1e-12
    )


@families
def test_probabilities_of_reports_are_those_of_perturb(d: int, g: int) -> None:
    oracle, rng = LLH(1.0, d, g), np.random.default_rng(2)
    weights = rng.dirichlet(np.ones(d))
    law = oracle.probabilities(weights)
    assert law.sum() == pytest.approx(1)
    log_likelihood = oracle.laws.log_likelihood
    assert log_likelihood is not None
    np.testing.assert_allclose(np.log(law), log_likelihood(every_report(oracle), weights))
    reports = oracle.perturb(rng.choice(d, 40_000, p=weights), rng)
    assert_follows(oracle.summarise(reports), law)
    assert_follows(tally_sampler(oracle).population_tally(weights, 10**9, rng).summary, law)


@pytest.mark.parametrize(
    ("epsilon", "g", "ratio"),
    [
        (0.2, 2, 1.010),
        (0.5, 3, 1.009),
        (1.0, 3, 1.024),
        (1.5, 5, 1.003),
        (2.0, 7, 1.011),
        (3.0, 23, 1.002),
        (4.0, 53, 1.001),
    ],
)
def test_default_range_has_the_variance_of_oue(epsilon: float, g: int, ratio: float) -> None:
    oracle, oue = frequency_oracle("llh", epsilon, 102), OUE(epsilon, 102)
    assert oracle.own == {"hash_range": g}
    variances = (float(each.variance(0.0, 1)) for each in (oracle, oue))
    assert next(variances) / next(variances) == pytest.approx(ratio, abs=6e-4)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 2.0, 4.0, 10.0])
@pytest.mark.parametrize("d", [2, 102, 1_024, 10_000, 100_000])
def test_default_range_fits_every_round(epsilon: float, d: int) -> None:
    oracle = frequency_oracle("llh", epsilon, d)
    assert isinstance(oracle, LLH)
    assert oracle.summary_size <= 1 << 20
    assert d <= oracle.seed_count < oracle.hash_range * d
    primes = [g for g in range(2, 200) if all(g % i for i in range(2, g))]
    fitting = [g for g in primes if g ** (math.ceil(math.log(d, g) - 1e-9) + 1) <= 1 << 20]
    least = min(float(LLH(epsilon, d, g).variance(0.0, 1)) for g in fitting)
    assert float(oracle.variance(0.0, 1)) <= least * (1 + 1e-12)


def test_seeds_end_below_their_number() -> None:
    oracle = LLH(1.0, 9, hash_range=3)
    last = oracle.seed_count - 1
    assert oracle.reports([last], [2]).tolist() == [oracle.summary_size - 1]
    for seed, bucket, name in ((last + 1, 0, "seeds"), (0, 3, "buckets")):
        with pytest.raises(ParameterError, match=name):
            oracle.reports([seed], [bucket])


@pytest.mark.parametrize(
    ("d", "g", "message"),
    [
        (102, 4, "must be a prime"),
        (102, 1022, "must be an integer from 2 to 1021"),
        (110, 103, r"1,048,576 are counted: choose a smaller hash_range, or oue"),
        (100_000, 5, "or oue"),
    ],
)
def test_rejects_a_range_that_is_no_prime_or_too_large(d: int, g: int, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        LLH(1.0, d, g)


def test_many_reports_of_every_item_raise_an_alarm() -> None:
    oracle, rng = LLH(0.5, 102, 3), np.random.default_rng(1)
    honest = tally_sampler(oracle).population_tally(np.full(102, 1 / 102), 20_000, rng)
    assert oracle.supports(np.zeros(1, "<u4")).all()
    for added, raised in ((0, False), (400, True)):
        tally = honest + Tally.of(oracle, np.zeros(added, "<u4"))
        alarms = raise_alarms(oracle, tally, rate=1e-6)
        assert [each.raised for each in alarms if each.name == "all-supporting"] == [raised]
    oracle.wire.check_submission(np.zeros(1, "<u4"))
    with pytest.raises(ReportError, match="9 of 9 reports are report 0, which supports every"):
        oracle.wire.check_submission(np.zeros(9, "<u4"))
