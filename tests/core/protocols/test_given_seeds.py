"""OLH with given seeds: the list, its exact estimate and variance, and what it leaves attacks and
recoveries.
"""

import dataclasses
import hashlib
import pickle
import struct
from collections.abc import Callable

import numpy as np
import pytest
import xxhash

from ldprecover import (
    Estimates,
    ParameterError,
    RecoveryRequest,
    ReportError,
    RoundExport,
    RoundParameters,
    Tally,
    recover,
)
from ldprecover.estimation.theory import genuine_law
from ldprecover.evidence.alarms import raise_alarms
from ldprecover.protocols import (
    OLH,
    PROTOCOLS,
    GivenSeedsOLH,
    coins_of,
    crafter_of,
    frequency_oracle,
    own_parameters,
    wire,
)
from ldprecover.protocols.seed_list import seed_list
from ldprecover.recovery import METHODS
from ldprecover.testing import CHECKS
from ldprecover.testing.tolerances import assert_counts, bernstein_of
from ldprecover.types import FloatArray

ORACLES = [
    GivenSeedsOLH(0.5, 30, 3, 64),
    GivenSeedsOLH(1.0, 6, 4, 100),
    GivenSeedsOLH(2.0, 20, 9, 64),
    GivenSeedsOLH(0.1, 2, 2, 64),
]
PER_REPORT = (
    "parameters",
    "reports",
    "packed_form",
    "json_form",
    "summary",
    "likelihood",
    "encoded",
    "crafted",
)


@pytest.mark.parametrize("check", PER_REPORT)
@pytest.mark.parametrize("oracle", ORACLES, ids=repr)
def test_given_seeds_keep_the_contract(oracle: GivenSeedsOLH, check: str) -> None:
    CHECKS[check](oracle, np.random.default_rng(1))


def test_the_list_is_xxhash32_of_its_places() -> None:
    listed = seed_list(4096)
    assert listed.tolist() == [xxhash.xxh32_intdigest(struct.pack("<I", i), 0) for i in range(4096)]
    assert np.unique(listed).size == 4096
    assert np.array_equal(seed_list(64), listed[:64])


def test_ticket_bits_pick_a_seed() -> None:
    oracle, listed = ORACLES[1], seed_list(100)
    assert oracle.seed_of(0) == listed[0]
    assert oracle.seed_of((1 << 64) - 1) == listed[99]
    assert oracle.seed_of((1 << 64) * 50 // 100) == listed[50]
    with pytest.raises(ParameterError, match="olh lacks assigned seeds"):
        OLH(1.0, 6, 4).seed_of(0)


@pytest.mark.parametrize("make", ["perturb", "encode"])
def test_reports_take_the_seeds_that_were_given_in_turn(make: str) -> None:
    oracle, rng = ORACLES[0], np.random.default_rng(1)
    seeds = rng.permutation(seed_list(64))[:9]
    holders = oracle.with_seeds(seeds)
    first, second = getattr(holders, make)([0, 5, 7]), getattr(holders, make)(np.arange(6), rng)
    assert [*first["seed"], *second["seed"]] == seeds.tolist()
    with pytest.raises(ParameterError, match="fewer seeds than reports"):
        holders.perturb([0])
    assert oracle == holders
    assert not {*oracle.perturb(np.arange(30))["seed"].tolist()} <= {*seeds.tolist()}
    with pytest.raises(ReportError, match="one of the round's 64") as caught:
        oracle.with_seeds([*seeds, 7])
    assert caught.value.position == 9
    with pytest.raises(ParameterError, match="grr lacks assigned seeds"):
        frequency_oracle("grr", 1.0, 5).with_seeds(seeds)


def test_unlisted_seed_is_rejected_with_its_position() -> None:
    oracle = ORACLES[0]
    reports = oracle.perturb(np.zeros(5, np.int64))
    reports["seed"][3] += 1
    for refused in (
        lambda: oracle.wire.check(reports),
        lambda: oracle.wire.unpack(wire.pack(reports)),
        lambda: oracle.wire.from_json(oracle.wire.to_json(reports)),
    ):
        with pytest.raises(ReportError, match="the seed must be one of the round's 64") as caught:
            refused()
        assert caught.value.position == 3


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((1.0, 6, 4, 63), "given_seeds must be from 64 to 4096"),
        ((1.0, 6, 4, 4097), "given_seeds must be from 64 to 4096"),
        ((1.0, 6, 4, True), "given_seeds must be an integer"),
        ((0.5, 65, 3, 64), "at least 2d/.g-1. = 65 for 65 items in 3 buckets"),
        ((0.5, 1024, 3, 4096), r"d\^2 M g must be at most 2\^32"),
        ((0.5, 5000, 3, 4096), "at least 2d/.g-1. = 5000"),
    ],
)
def test_a_list_that_is_too_short_or_too_long_is_rejected(
    arguments: tuple[float, int, int, int], reason: str
) -> None:
    with pytest.raises(ParameterError, match=reason):
        GivenSeedsOLH(*arguments)


@pytest.mark.parametrize(
    ("d", "g", "m"), [(102, 3, 102), (102, 2, 204), (300, 3, 300), (128, 5, 64), (20, 256, 64)]
)
def test_the_shortest_lists_about_double_the_variance(d: int, g: int, m: int) -> None:
    """Marchenko and Pastur's mean is 1/(1 - d/(M(g-1))); the items' own values stay near it."""
    oracle = GivenSeedsOLH(0.5, d, g, m)
    factors = oracle.variance(np.zeros(d), 1000) / OLH(0.5, d, g).variance(0.0, 1000)
    expected = 1 / (1 - d / (m * (g - 1)))
    assert factors.mean() == pytest.approx(expected, rel=0.05)
    assert factors.max() < 1.4 * expected


def _skewed(d: int) -> FloatArray:
    weights = 1.0 / np.arange(1, d + 1)
    return weights / weights.sum()


def _moments(
    oracle: GivenSeedsOLH, draw: Callable[[], Tally], truth: FloatArray, variance: FloatArray
) -> None:
    """600 estimates have this mean and variance: 7 standard deviations of either, once in 10^11 for
    a normal law.
    """
    found = np.array(
        [oracle.estimate(tally.counts(oracle), tally.n) for tally in (draw() for _ in range(600))]
    )
    assert (np.abs(found.mean(axis=0) - truth) <= 7 * np.sqrt(variance / 600)).all()
    # Counts of 5,000 reports have little excess of their fourth moment: a tenth more is for it.
    assert (np.abs(found.var(axis=0) - variance) <= 1.1 * 7 * variance * np.sqrt(2 / 600)).all()


@pytest.mark.parametrize("oracle", ORACLES, ids=repr)
@pytest.mark.parametrize("way", ["population", "reports"])
def test_the_estimate_is_unbiased_and_its_variance_exact(oracle: GivenSeedsOLH, way: str) -> None:
    d, n, rng = oracle.domain_size, 5000, np.random.default_rng(2)
    truth = _skewed(d)

    def draw() -> Tally:
        if way == "population":
            return oracle.simulation.population_tally(truth, n, rng)
        return Tally.of(oracle, oracle.perturb(rng.choice(d, n, p=truth), rng))

    _moments(oracle, draw, truth, oracle.variance(truth, n))


@pytest.mark.parametrize("oracle", ORACLES, ids=repr)
def test_tally_of_known_users_has_the_law_of_reports(oracle: GivenSeedsOLH) -> None:
    rng = np.random.default_rng(3)
    held = np.round(_skewed(oracle.domain_size) * 400).astype(np.int64)
    n, items = int(held.sum()), np.repeat(np.arange(held.size), held)
    support = oracle.laws.honest_support(held / n)
    for draw in (
        lambda: oracle.simulation.honest_tally(held, rng).counts(oracle),
        lambda: oracle.support_counts(oracle.perturb(items, rng)),
    ):
        total = sum(draw() for _ in range(200))
        assert (np.abs(total - 200 * n * support) <= bernstein_of(200 * n * 0.25)).all()
    assert oracle.simulation.honest_tally(np.zeros_like(held), rng).n == 0
    with pytest.raises(ParameterError, match="true_counts"):
        oracle.simulation.honest_tally(held[:-1], rng)


def test_support_of_other_items_follows_collisions() -> None:
    oracle, rng = ORACLES[0], np.random.default_rng(4)
    counts = oracle.support_counts(oracle.perturb(np.full(200_000, 7), rng))
    weights = np.zeros(30)
    weights[7] = 1.0
    assert_counts(counts, oracle.laws.honest_support(weights), 200_000)
    # Under an ideal hash it would be p and q alone, which these counts are not.
    with pytest.raises(AssertionError, match="not in the shares"):
        assert_counts(counts, oracle.q + weights * (oracle.p - oracle.q), 200_000)


def test_standard_errors_are_those_of_the_exact_variance() -> None:
    oracle = ORACLES[0]
    tally = oracle.simulation.population_tally(_skewed(30), 2000, np.random.default_rng(5))
    found = Estimates.of(oracle, tally)
    clipped = np.clip(found.frequencies, 0, 1)
    assert np.array_equal(found.standard_errors, np.sqrt(oracle.variance(clipped, 2000)))
    assert np.array_equal(
        oracle.variance(clipped, 2000), oracle.variance(clipped / clipped.sum(), 2000)
    )
    least, most = oracle.variance(np.zeros(30), 2000).min(), float(oracle.variance(0.0, 2000))
    assert least > OLH(0.5, 30, 3).variance(0.0, 2000)
    assert most == pytest.approx(oracle.variance(np.zeros(30), 2000).max())
    for frequencies in (0.0, np.zeros(30)):
        with pytest.raises(ParameterError, match="at least one report"):
            oracle.variance(frequencies, 0)


@pytest.mark.parametrize("oracle", ORACLES, ids=repr)
def test_sum_variance_bounds_every_distribution(oracle: GivenSeedsOLH) -> None:
    n, rng, d = 2000, np.random.default_rng(6), oracle.domain_size
    sum_variance = oracle.laws.sum_variance(n)
    assert sum_variance is not None
    for truth in (np.eye(d)[0], np.full(d, 1 / d)):
        sums = [
            oracle.estimate(
                oracle.simulation.population_tally(truth, n, rng).counts(oracle), n
            ).sum()
            for _ in range(500)
        ]
        # Seven standard deviations of a variance from 500 rounds, once in 10^11.
        assert np.var(sums) <= sum_variance * (1 + 7 * np.sqrt(2 / 500))
        assert abs(np.mean(sums) - 1) <= 7 * np.sqrt(sum_variance / 500)


@pytest.mark.parametrize("aim", ["most", "balanced", "honest"])
@pytest.mark.parametrize("r", [1, 3, 5])
def test_crafted_reports_have_exact_support(aim: str, r: int) -> None:
    oracle, rng, m = ORACLES[0], np.random.default_rng(7), 40_000
    items = np.array([3, 8, 9, 20, 29])
    wanted = items[rng.random((m, 5)).argsort(axis=1)[:, :r]]
    included = np.zeros(30)
    included[items] = r / 5
    support = crafter_of(oracle).crafted_support(included, r, aim=aim)  # type: ignore[arg-type]
    assert_counts(oracle.support_counts(crafter_of(oracle).craft(wanted, rng, aim=aim)), support, m)  # type: ignore[arg-type]


def test_coins_and_uniform_reports_have_exact_support() -> None:
    oracle, rng, m = ORACLES[0], np.random.default_rng(8), 40_000
    items = np.array([3, 8, 9, 20, 29])
    reports = coins_of(oracle).craft(items, 0.5, m, rng)
    assert_counts(oracle.support_counts(reports), coins_of(oracle).support(items, 0.5), m)
    uniform = crafter_of(oracle).uniform_reports(m, rng)
    assert_counts(
        oracle.support_counts(uniform), np.full(30, crafter_of(oracle).uniform_support), m
    )


@pytest.mark.parametrize(
    "ask",
    [
        lambda oracle: oracle.laws.size_law().probabilities(),
        lambda oracle: crafter_of(oracle).report_of_size(5, np.random.default_rng(1)),
        lambda oracle: oracle.laws.hits_of_others(np.array([1])),
        lambda oracle: oracle.laws.hits_of_others(np.array([1, 2])),
        lambda oracle: crafter_of(oracle).crafted_support(np.full(30, 0.5), 15),
    ],
)
def test_ideal_hash_laws_are_rejected(
    ask: Callable[[GivenSeedsOLH], object],
) -> None:
    with pytest.raises(ParameterError, match="olh with given seeds lacks"):
        ask(ORACLES[0])
    with pytest.raises(ParameterError, match="pure"):
        genuine_law(ORACLES[0], np.full(30, 1 / 30), 100)


@pytest.mark.parametrize("method", METHODS)
def test_recoveries_work_on_given_seeds_or_state_why_not(method: str) -> None:
    oracle, rng, truth = GivenSeedsOLH(2.0, 20, 9, 64), np.random.default_rng(9), _skewed(20)
    reports = oracle.perturb(rng.choice(20, 20_000, p=truth), rng)
    refused = {
        "diffstats": "sizes of honest olh reports",
        "fiad": "support sets is not known",
        "unmix": "lacks a law",
    }
    if method in refused:
        with pytest.raises(ParameterError, match=refused[method]):
            recover(oracle, reports, RecoveryRequest(method, targets=[3]))
        return
    found = recover(oracle, reports, RecoveryRequest(method, targets=[3], eta=0.01)).recovered
    assert found.shape == (20,)
    # Detection by targets drops all who support one; what remains of honest users differs.
    if "detection" not in method and method not in ("normalization", "conditional-probability"):
        assert np.abs(found - truth).max() < 0.1


def test_em_is_no_worse_than_the_estimate_it_starts_from() -> None:
    oracle, truth = GivenSeedsOLH(1.0, 20, 4, 64), _skewed(20)
    rng = np.random.default_rng(10)
    losses = []
    for _ in range(5):
        reports = oracle.perturb(rng.choice(20, 20_000, p=truth), rng)
        poisoned = Estimates.of(oracle, Tally.of(oracle, reports)).frequencies
        found = recover(oracle, reports, "em").recovered
        losses.append((((found - truth) ** 2).sum(), ((poisoned - truth) ** 2).sum()))
    of_em, of_estimate = np.array(losses).sum(axis=0)
    assert of_em < of_estimate


@pytest.mark.parametrize("model", ["paper", "exact", "searched"])
def test_a_known_model_of_the_attack_recovers_given_seeds(model: str) -> None:
    oracle, rng, truth = GivenSeedsOLH(1.0, 30, 4, 64), np.random.default_rng(11), _skewed(30)
    targets = np.array([20, 22, 24, 26])
    genuine = oracle.simulation.population_tally(truth, 100_000, rng)
    malicious = Tally.of(
        oracle, crafter_of(oracle).craft(np.broadcast_to(targets, (10_000, 4)), rng)
    )
    poisoned = Estimates.of(oracle, genuine + malicious).frequencies
    found = recover(
        oracle,
        poisoned,
        RecoveryRequest("ldprecover", targets=targets, eta=0.1, malicious_model=model),
    )
    assert ((found.recovered - truth) ** 2).sum() < ((poisoned - truth) ** 2).sum()
    if model == "searched":  # the exact law of what was sent: what is left is noise
        off = found.genuine - truth
        assert (np.abs(off) <= 7 * 1.1 * np.sqrt(oracle.variance(truth, 110_000))).all()


def test_alarms_of_given_seeds_see_crafted_reports() -> None:
    oracle, rng, truth = GivenSeedsOLH(1.0, 30, 4, 64), np.random.default_rng(12), _skewed(30)
    honest = oracle.simulation.population_tally(truth, 50_000, rng)
    names = [alarm.name for alarm in raise_alarms(oracle, honest, rate=1e-6)]
    assert names == ["sum-drift", "excess"]
    assert not any(alarm.raised for alarm in raise_alarms(oracle, honest, rate=1e-6))
    crafted = Tally.of(
        oracle, crafter_of(oracle).craft(np.broadcast_to(np.arange(10, 18), (10_000, 8)), rng)
    )
    assert all(alarm.raised for alarm in raise_alarms(oracle, honest + crafted, rate=1e-6))


def test_digest_covers_the_number_of_given_seeds() -> None:
    items = tuple(map(str, range(30)))
    own = {"hash_range": 3, "given_seeds": 64}
    parameters = RoundParameters.named("olh", 0.5, items, own)
    assert parameters == RoundParameters("olh", 0.5, items, 3, given_seeds=64)
    assert parameters.own == own
    assert parameters.oracle == ORACLES[0]
    assert parameters.oracle.listed_seeds == 64
    assert RoundParameters("olh", 0.5, items).oracle.listed_seeds is None
    labels = b"".join(struct.pack("<I", len(item)) + item.encode() for item in items)
    written = b"olh\0" + struct.pack("<dII", 0.5, 3, 30) + labels
    assert (
        parameters.digest
        == hashlib.sha256(written + b"given_seeds\0" + struct.pack("<I", 64)).hexdigest()
    )
    without = RoundParameters("olh", 0.5, items, 3)
    assert without.digest == hashlib.sha256(written).hexdigest()
    assert "given_seeds" in own_parameters()


@pytest.mark.parametrize("protocol", [name for name in PROTOCOLS if name != "olh"])
def test_seeds_are_given_in_olh_alone(protocol: str) -> None:
    for refused in (
        lambda: frequency_oracle(protocol, 1.0, 10, None, 64),
        lambda: RoundParameters.named(protocol, 1.0, "ab", {"given_seeds": 64}),
    ):
        with pytest.raises(
            ParameterError, match=f"given_seeds belongs to olh; {protocol} has none"
        ):
            refused()


def test_an_export_keeps_the_given_seeds_and_their_estimate() -> None:
    parameters = RoundParameters("olh", 0.5, tuple(map(str, range(30))), 3, given_seeds=64)
    tally = parameters.oracle.simulation.population_tally(
        _skewed(30), 3000, np.random.default_rng(13)
    )
    export = RoundExport("R1", "given", parameters, tally)
    written = export.to_dict()
    assert (written["hash_range"], written["given_seeds"]) == (3, 64)
    read = RoundExport.from_dict(written)
    assert read.parameters == parameters
    assert np.array_equal(read.estimates().frequencies, Estimates.of(ORACLES[0], tally).frequencies)
    for changed in (
        written | {"given_seeds": 65},
        {k: v for k, v in written.items() if k != "given_seeds"},
    ):
        with pytest.raises(ParameterError, match="damaged or was changed"):
            RoundExport.from_dict(changed)


def test_the_oracle_is_a_value() -> None:
    oracle = ORACLES[0]
    assert pickle.loads(pickle.dumps(oracle)) == oracle
    assert dataclasses.replace(oracle, given_seeds=65) != oracle
    assert oracle != OLH(0.5, 30, 3)
