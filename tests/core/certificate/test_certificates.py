"""Certificates from counts: exact, never wrong beyond their confidence, and consistent."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from ldprecover import ParameterError, Tally, frequency_oracle
from ldprecover.certificate import Ahead, AmongFirst, Certificate, MoreThan, certify
from ldprecover.certificate.evidence import RoundEvidence
from ldprecover.certificate.region import Region
from ldprecover.distributions import binomial_threshold
from ldprecover.protocols import PROTOCOLS, FrequencyOracle

D = 6


def tally_of(counts: list[int], n: int) -> Tally:
    return Tally(np.array(counts, np.int64), n)


@st.composite
def rounds(draw: st.DrawFn) -> tuple[FrequencyOracle, Tally]:
    """A round of OUE with any counts, near those of honest users or not."""
    oracle = frequency_oracle("oue", draw(st.sampled_from([0.5, 1.0, 3.0])), D)
    n = draw(st.integers(1, 10**6))
    counts = [draw(st.integers(0, n)) for _ in range(D)]
    if draw(st.booleans()):
        weights = np.array([draw(st.integers(0, 20)) for _ in range(D)], float)
        frequencies = weights / max(weights.sum(), 1)
        counts = (n * (oracle.q + frequencies * (oracle.p - oracle.q))).astype(int).tolist()
    return oracle, tally_of(counts, n)


shares = st.floats(0, 0.999)


def contains(outer: Certificate, inner: Certificate) -> bool:
    """Return whether one certificate's intervals contain the other's, up to rounding."""
    if not inner.is_possible:
        return True
    if not outer.is_possible:
        return False
    below = (outer.lower <= inner.lower + 1e-9).all()
    return bool(below and (outer.upper >= inner.upper - 1e-9).all())


@given(rounds(), shares, shares)
def test_larger_share_widens_all_intervals(
    round: tuple[FrequencyOracle, Tally], first: float, second: float
) -> None:
    small, large = sorted([first, second])
    assert contains(certify(*round, large), certify(*round, small))


@given(rounds(), shares, st.floats(0.5, 0.999), st.floats(0.5, 0.999))
def test_larger_confidence_widens_all_intervals(
    round: tuple[FrequencyOracle, Tally], share: float, first: float, second: float
) -> None:
    low, high = sorted([first, second])
    careful, bold = certify(*round, share, high), certify(*round, share, low)
    assert contains(careful, bold)
    assert careful.least_malicious_share <= bold.least_malicious_share + 1e-8


@given(rounds(), shares, st.permutations(range(D)))
def test_labels_do_not_matter(
    round: tuple[FrequencyOracle, Tally], share: float, order: list[int]
) -> None:
    oracle, tally = round
    other = Tally(tally.summary[order], tally.n)
    original, relabelled = certify(oracle, tally, share), certify(oracle, other, share)
    assert original.is_possible is relabelled.is_possible
    if original.is_possible:
        np.testing.assert_allclose(relabelled.lower, original.lower[order], atol=1e-11)
        np.testing.assert_allclose(relabelled.upper, original.upper[order], atol=1e-11)
    assert relabelled.least_malicious_share == pytest.approx(
        original.least_malicious_share, abs=1e-8
    )


@given(rounds(), st.integers(2, 20))
def test_merged_rounds_are_more_precise(round: tuple[FrequencyOracle, Tally], number: int) -> None:
    """The sum of equal rounds has narrower intervals and proves no smaller a share."""
    oracle, tally = round
    merged = tally
    for _ in range(number - 1):
        merged = merged + tally
    one, all_ = certify(oracle, tally, 0.3), certify(oracle, merged, 0.3)
    assert contains(one, all_)
    assert all_.least_malicious_share >= one.least_malicious_share - 1e-8


@given(rounds(), st.sampled_from([Ahead(0, 1), AmongFirst((0, 2), 3), MoreThan((1, 3), 0.2)]))
def test_claim_holds_from_the_least_share_to_its_tolerance(
    round: tuple[FrequencyOracle, Tally], claim: Ahead | AmongFirst | MoreThan
) -> None:
    certificate = certify(*round, 0.0)
    least, tolerance = certificate.least_malicious_share, certificate.tolerance(claim)
    after = certificate.evidence.region(min(least + 1e-8, 1 - 1e-12))
    if tolerance is None:
        assert after is None or not claim.holds(after)
        return
    assert tolerance >= least
    region = certificate.evidence.region(tolerance)
    assert region is None or claim.holds(region)
    if tolerance < 0.999:
        beyond = certificate.evidence.region(tolerance + 1e-8)
        assert beyond is not None
        assert not claim.holds(beyond)


def test_claim_on_several_items_is_one_on_each() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        ends = rng.integers(0, 5, (2, D)) / 4
        region = Region(ends.min(axis=0), ends.max(axis=0))
        items, k = tuple(rng.choice(D, 3, replace=False).tolist()), int(rng.integers(1, D))
        assert AmongFirst(items, k).holds(region) is all(
            AmongFirst((item,), k).holds(region) for item in items
        )


@pytest.mark.parametrize("seed", range(10))
def test_limits_of_a_box_are_those_of_the_linear_programme(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 9))
    truth = rng.dirichlet(np.full(d, 0.4))
    lower = truth - rng.exponential(0.1, d) * rng.integers(0, 2, d)
    upper = truth + rng.exponential(0.1, d) * rng.integers(0, 2, d)
    box = Region.of(lower, upper)
    assert box is not None
    bounds = list(zip(np.maximum(lower, 0), np.minimum(upper, 1), strict=True))
    for weights in (*np.eye(d), rng.integers(0, 2, d), rng.normal(size=d)):
        low, high = (
            sign * linprog(sign * weights, A_eq=np.ones((1, d)), b_eq=[1], bounds=bounds).fun
            for sign in (1, -1)
        )
        assert box.limits(weights) == pytest.approx((low, high), abs=1e-9)
    unit = np.eye(d)
    ends = np.array([box.limits(unit[v]) for v in range(d)])
    np.testing.assert_allclose(ends, np.column_stack([box.lower, box.upper]), atol=1e-9)


@settings(max_examples=50)
@given(st.lists(st.tuples(st.floats(-0.2, 1), st.floats(0, 1.2)), min_size=2, max_size=8))
def test_a_box_is_empty_if_the_linear_programme_is(ends: list[tuple[float, float]]) -> None:
    d, (lower, upper) = len(ends), np.array(ends).T
    slack = min(1 - np.maximum(lower, 0).sum(), np.minimum(upper, 1).sum() - 1, key=abs)
    if abs(slack) < 1e-6 or (np.abs(upper - lower) < 1e-6).any():
        return
    bounds = list(zip(np.maximum(lower, 0), np.minimum(upper, 1), strict=True))
    is_empty = any(low > high for low, high in bounds) or (
        linprog(np.zeros(d), A_eq=np.ones((1, d)), b_eq=[1], bounds=bounds).status == 2
    )
    assert (Region.of(lower, upper) is None) is is_empty


def exact_limits(oracle: FrequencyOracle, law: np.ndarray, share: float, item: int) -> np.ndarray:
    """Return the least and largest frequency of an item over all frequencies and malicious laws.

    The malicious reports may have any law over the supports that reports of the protocol have.
    `law` is the probability that a report of the round supports each item.
    """
    d = oracle.domain_size
    supports = (np.arange(1 << d)[:, None] >> np.arange(d)) & 1
    if oracle.fixed_size is not None:
        supports = supports[supports.sum(axis=1) == oracle.fixed_size]
    # The variables: d frequencies, then the share of reports that have each malicious support.
    honest = (1 - share) * ((oracle.p - oracle.q) * np.eye(d) + oracle.q)
    none, ones = np.zeros(len(supports)), np.ones(len(supports))
    rows = np.vstack(
        [
            np.hstack([honest, supports.T]),
            np.hstack([np.ones(d), none]),
            np.hstack([np.zeros(d), ones]),
        ]
    )
    ends = []
    for sign in (1, -1):
        cost = sign * np.eye(rows.shape[1])[item]
        result = linprog(cost, A_eq=rows, b_eq=[*law, 1, share], bounds=(0, 1))
        assert result.status == 0, result.message
        ends.append(sign * result.fun)
    return np.array(ends)


@pytest.mark.parametrize("protocol", ["grr", "oue", "sue", "olh", "ss"])
@pytest.mark.parametrize("d", [2, 6])
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_intervals_reach_those_of_the_worst_attack(protocol: str, d: int, epsilon: float) -> None:
    """A linear programme over all laws of malicious reports confirms them within 1.1."""
    oracle, n = frequency_oracle(protocol, epsilon, d), 10**12  # hardly any noise
    rng = np.random.default_rng(d)
    for share in (0.01, 0.05, 0.2):
        frequencies = rng.dirichlet(np.full(d, 0.7))
        support = np.full(d, oracle.q)
        if oracle.fixed_size is not None:
            support = oracle.fixed_size * rng.dirichlet(np.full(d, 50.0))
        elif share > 0.1:
            support = rng.random(d)
        law = (1 - share) * (oracle.q + frequencies * (oracle.p - oracle.q)) + share * support
        certificate = certify(oracle, tally_of((law * n).astype(int).tolist(), n), share)
        for item in range(d):
            low, high = exact_limits(oracle, law, share, item)
            width = certificate.upper[item] - certificate.lower[item]
            assert certificate.lower[item] <= low + 1e-4
            assert certificate.upper[item] >= high - 1e-4
            assert width <= (1.0 if protocol == "grr" else 1.1) * (high - low) + 1e-3


@given(
    rounds(),
    st.floats(0.5, 0.999),
    st.floats(0.5, 0.999),
    st.sampled_from([Ahead(0, 1), AmongFirst((0, 2), 3), MoreThan((1, 3), 0.2)]),
)
def test_larger_confidence_proves_no_larger_tolerance(
    round: tuple[FrequencyOracle, Tally],
    first: float,
    second: float,
    claim: Ahead | AmongFirst | MoreThan,
) -> None:
    low, high = sorted([first, second])
    careful, bold = certify(*round, 0.1, high), certify(*round, 0.1, low)
    tolerance, largest = careful.tolerance(claim), bold.tolerance(claim)
    if largest is None:  # open at this share, also to the careful one
        largest = bold.least_malicious_share
    assert tolerance is None or tolerance <= largest + 1e-8


ROUNDS = 100


@pytest.mark.parametrize("protocol", list(PROTOCOLS))
@pytest.mark.parametrize(
    "attack",
    [
        "raises one item",
        *(
            pytest.param(attack, marks=pytest.mark.statistical)
            for attack in ("none", "supports all", "supports none")
        ),
    ],
)
def test_intervals_hold_the_truth_in_all_but_few_rounds(protocol: str, attack: str) -> None:
    """At a confidence of 0.8 more wrong rounds than this have a probability below 1e-9."""
    rng = np.random.default_rng([ROUNDS, len(protocol), len(attack)])
    wrong, threshold = 0, binomial_threshold(ROUNDS, 0.2, 1e-9)
    for _ in range(ROUNDS):
        d, share = int(rng.integers(2, 30)), float(rng.uniform(0, 0.2))
        oracle = frequency_oracle(protocol, float(rng.uniform(0.2, 4)), d)
        n = int(10 ** rng.uniform(2.5, 4.5))
        malicious = 0 if attack == "none" else int(share * n)
        items = rng.choice(d, n - malicious, p=rng.dirichlet(np.full(d, 0.5)))
        truth = np.bincount(items, minlength=d) / items.size
        tally = Tally.of(oracle, oracle.perturb(items, rng))
        counts = tally.counts(oracle).astype(float)
        counts += malicious * {"raises one item": np.eye(d)[0], "supports all": 1}.get(attack, 0)
        certificate = Certificate(RoundEvidence(oracle, counts, n, 1 - 0.8), share, 0.8)
        is_inside = certificate.is_possible and bool(
            (certificate.lower <= truth).all() and (certificate.upper >= truth).all()
        )
        actual = malicious / n
        wrong += not (is_inside and certificate.least_malicious_share <= actual)
    assert wrong < threshold


def test_difference_of_an_item_from_itself_is_zero() -> None:
    certificate = certify(frequency_oracle("oue", 1.0, D), tally_of(D * [30], 100), 0.1)
    assert certificate.difference(2, 2) == (0.0, 0.0)
    assert certificate.total((1, 2), (2, 1)) == (0.0, 0.0)
    with pytest.raises(ParameterError, match="every item must be an integer from 0 to 5, not 6"):
        certificate.difference(6, 6)


def test_total_less_others_is_a_difference_of_totals() -> None:
    """Frequencies sum to one, so a total less that of all other items is twice the total less 1."""
    certificate = certify(frequency_oracle("oue", 1.0, D), tally_of(D * [3_000], 10_000), 0.01)
    low, high = certificate.total((0, 1), range(2, D))
    assert (low, high) == pytest.approx(tuple(2 * end - 1 for end in certificate.total((0, 1))))
    assert certificate.total((0,), (3,)) == certificate.difference(0, 3)


@pytest.mark.parametrize("k", [1, D])
def test_nothing_is_certain_of_an_impossible_share(k: int) -> None:
    certificate = certify(frequency_oracle("oue", 1.0, D), tally_of(D * [10**6], 10**6), 0.01)
    assert not certificate.is_possible
    ranking = certificate.ranking(k)
    assert (ranking.certain, ranking.possible) == ((), tuple(range(D)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"malicious_share": 1.0}, "malicious_share must be at least 0 and below 1, not 1.0"),
        ({"malicious_share": -0.1}, "malicious_share"),
        ({"malicious_share": float("nan")}, "malicious_share"),
        ({"confidence": 0.4}, "confidence must be at least 0.5 and below 1"),
        ({"confidence": 1.0}, "confidence"),
        ({"reports": tally_of(D * [0], 0)}, "at least one report"),
    ],
)
def test_parameters_outside_their_range(change: dict[str, object], words: str) -> None:
    tally = tally_of(D * [1], 2)
    arguments = {"reports": tally, "malicious_share": 0.1, **change}
    with pytest.raises(ParameterError, match=words):
        certify(frequency_oracle("oue", 1.0, D), **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("item", [-1, D, 1.0, True, "a"])
def test_claims_are_of_the_items_of_the_round(item: Any) -> None:
    """An index of -1 would be the last item."""
    certificate = certify(frequency_oracle("oue", 1.0, D), tally_of(D * [1], 2), 0.1)
    for claim in (Ahead(item, 0), Ahead(0, item), MoreThan((item,), 0.1)):
        with pytest.raises(ParameterError, match="every item must be an integer from 0 to"):
            certificate.tolerance(claim)
