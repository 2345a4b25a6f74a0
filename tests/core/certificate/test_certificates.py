"""Certificates from counts: consistent with each other, and their claims."""

import json
import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldprecover import ParameterError, Tally, frequency_oracle
from ldprecover.certificate import Ahead, AmongFirst, Certificate, MoreThan, certify
from ldprecover.certificate.certificates import _first_share
from ldprecover.certificate.questions import parse_question
from ldprecover.certificate.region import Region
from ldprecover.certificate.results import certificate_result
from ldprecover.protocols import FrequencyOracle

D = 6
CLAIMS = [Ahead(0, 1), AmongFirst((0, 2), 3), MoreThan((1, 3), 0.2)]


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


def contains(outer: Certificate, inner: Certificate) -> bool:
    """Return whether one certificate's intervals contain the other's, up to rounding."""
    if not (inner.is_possible and outer.is_possible):
        return not inner.is_possible
    below = (outer.lower <= inner.lower + 1e-9).all()
    return bool(below and (outer.upper >= inner.upper - 1e-9).all())


@given(
    rounds(),
    st.lists(st.floats(0, 0.999), min_size=2, max_size=2),
    st.lists(st.floats(0.5, 0.999), min_size=2, max_size=2),
    st.sampled_from(CLAIMS),
)
def test_more_is_proven_at_less_share_and_confidence_and_of_more_reports(
    round: tuple[FrequencyOracle, Tally], shares: list[float], confidences: list[float], claim: Any
) -> None:
    oracle, tally = round
    bold = certify(oracle, tally, min(shares), min(confidences))
    careful = certify(oracle, tally, max(shares), max(confidences))
    assert contains(careful, bold)
    assert contains(certify(oracle, tally, max(shares), min(confidences)), bold)
    assert contains(bold, certify(oracle, tally + tally, min(shares), min(confidences)))
    assert careful.least_malicious_share <= bold.least_malicious_share + 1e-8
    tolerance, largest = careful.tolerance(claim), bold.tolerance(claim)
    if largest is None:  # open at this share, also to the careful one
        largest = bold.least_malicious_share
    assert tolerance is None or tolerance <= largest + 1e-8


@given(rounds(), st.sampled_from(CLAIMS))
def test_claim_holds_from_the_least_share_to_its_tolerance(
    round: tuple[FrequencyOracle, Tally], claim: Any
) -> None:
    certificate = certify(*round, 0.0)
    least, tolerance = certificate.least_malicious_share, certificate.tolerance(claim)
    assert least == 0 or certificate.evidence.region(least) is None
    region = certificate.evidence.region(min(least + 2.0**-30, 1 - 1e-12))
    is_open = region is not None and not claim.holds(region)
    assert (tolerance is None) is is_open
    if tolerance is None:
        return
    assert tolerance >= least
    region = certificate.evidence.region(tolerance)
    assert region is None or claim.holds(region)
    if tolerance < 0.999:
        beyond = certificate.evidence.region(tolerance + 1e-8)
        assert beyond is not None
        assert not claim.holds(beyond)


@pytest.mark.parametrize("share", [0.0, 1e-9, 0.25, 0.7, 2.0])
def test_first_share_is_a_multiple_of_a_billionth(share: float) -> None:
    expected = max(0, min(math.ceil(share * 2**30), 2**30) - 1) / 2**30
    assert _first_share(lambda each: each >= share) == expected


def test_ranking_and_claims_compare_ends() -> None:
    """Against their definitions, in regions with many ties."""
    rng = np.random.default_rng(1)
    certificate = certify(frequency_oracle("oue", 1.0, D), tally_of(D * [30], 100), 0.1)
    for _ in range(100):
        ends = rng.integers(0, 5, (2, D)) / 4
        region = Region(ends.min(axis=0), ends.max(axis=0))
        certificate.__dict__["_intervals"] = region
        for k in range(1, D + 1):
            certain = [
                sum(region.upper[w] >= region.lower[v] for w in range(D) if w != v) < k
                for v in range(D)
            ]
            possible = [
                sum(region.lower[w] > region.upper[v] for w in range(D)) < k for v in range(D)
            ]
            ranking = certificate.ranking(k)
            assert ranking.certain == tuple(np.flatnonzero(certain))
            assert ranking.possible == tuple(np.flatnonzero(possible))
            items = tuple(rng.choice(D, 2, replace=False).tolist())
            holds = AmongFirst(items, k).holds(region)
            assert holds is all(certain[item] for item in items)
    box = Region(np.array([0.5, 0.25, 0.0]), np.array([0.75, 0.25, 0.25]))
    assert not MoreThan((0,), 0.5).holds(box)
    assert MoreThan((0, 1), 0.74).holds(box)
    assert not Ahead(0, 1, 0.25).holds(box)
    assert Ahead(0, 1, 0.24).holds(box)


def test_answers_are_the_certificates() -> None:
    """Each kind of question about one round; the numbers are those of its certificate."""
    oracle, labels, n = frequency_oracle("oue", 1.0, D), tuple("abcdef"), 40_000
    tally = tally_of([14_917, 13_530, 12_143, 11_219, 11_034, 10_941], n)
    fields: list[dict[str, Any]] = [
        {"items": ["c", 0, "a"], "more_than": 0.4},
        {"items": [1]},
        {"ahead": ["a", "f"]},
        {"ahead": [1, 0]},
        {"top": 2},
    ]
    questions = [parse_question(labels, each) for each in fields]
    result = certificate_result(
        oracle, tally, malicious_share=0.01, confidence=0.9, questions=questions
    )
    certificate, estimates = certify(oracle, tally, 0.01, 0.9), tally.frequencies(oracle)
    assert (result.n, result.events, result.seed, result.from_reports) == (n, 12, None, False)
    assert result.assumption == certificate.assumption
    assert result.assumption.startswith("If at most 1 % of the 40,000 reports are malicious, all")
    assert "with a confidence of 90 %" in result.assumption
    assert result.lower is not None
    assert result.lower.tolist() == certificate.lower.tolist()
    total, one, lead, behind, first = json.loads(json.dumps(result.answers))
    claims = [
        MoreThan((0, 2), 0.4),
        MoreThan((1,)),
        Ahead(0, 5),
        Ahead(1, 0),
        AmongFirst((0, 1), 2),
    ]
    for answer, claim in zip(result.answers, claims, strict=True):
        assert answer["tolerance"] == certificate.tolerance(claim)
        assert certificate.region is not None
        assert answer["certified"] is claim.holds(certificate.region)
    assert [each["certified"] for each in result.answers] == [True, True, True, False, True]
    assert (total["items"], total["more_than"]) == ([0, 2], 0.4)
    assert total["estimate"] == pytest.approx(estimates[0] + estimates[2])
    assert (total["lower"], total["upper"]) == certificate.total([0, 2])
    assert (one["items"], one["more_than"]) == ([1], 0.0)
    assert (lead["ahead"], behind["ahead"]) == ([0, 5], [1, 0])
    assert (lead["lower"], lead["upper"]) == certificate.difference(0, 5)
    assert behind["estimate"] == pytest.approx(estimates[1] - estimates[0])
    assert -1 < behind["lower"] < behind["upper"] < 0
    assert (first["top"], first["items"]) == (2, [0, 1])
    assert (first["certain"], first["possible"]) == ([0, 1], [0, 1])


def test_answers_about_a_mean() -> None:
    oracle, tally = frequency_oracle("grr", 2.0, 2), tally_of([300, 700], 1_000)
    question = parse_question(("-1", "1"), {"mean_above": 0.25})
    (answer,) = certificate_result(
        oracle, tally, malicious_share=0.01, confidence=0.9, questions=[question]
    ).answers
    certificate = certify(oracle, tally, 0.01, 0.9)
    assert (answer["lower"], answer["upper"]) == certificate.difference(1, 0)
    assert answer["tolerance"] == certificate.tolerance(Ahead(1, 0, by=0.25))
    assert (answer["certified"], answer["mean_above"], question.sets) == (True, 0.25, ((1,),))
    assert answer["estimate"] == pytest.approx(0.4 / math.tanh(1))


def test_ends_of_answers_are_possible_values() -> None:
    """Of a share of which nothing is known."""
    oracle, tally = frequency_oracle("oue", 1.0, D), tally_of([15_000] + [12_000] * 5, 40_000)
    fields: list[dict[str, Any]] = [{"items": [1, 2]}, {"ahead": [0, 1]}]
    questions = [parse_question("abcdef", each) for each in fields]
    result = certificate_result(
        oracle, tally, malicious_share=0.99, confidence=0.95, questions=questions
    )
    assert [(each["lower"], each["upper"]) for each in result.answers] == [(0, 1), (-1, 1)]


def test_claim_may_hold_at_a_smaller_share_than_assumed() -> None:
    oracle = frequency_oracle("oue", 1.0, D)
    tally = tally_of([14_917, 13_530, 12_143, 11_100, 11_100, 11_000], 40_000)
    questions = [parse_question("abcdef", each) for each in ({"top": 2}, {"ahead": [3, 4]})]
    open_claim, noise = certificate_result(
        oracle, tally, malicious_share=0.2, confidence=0.95, questions=questions
    ).answers
    assert not open_claim["certified"]
    assert 0 < open_claim["tolerance"] < 0.2
    assert noise["tolerance"] is None


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"items": ["g"]}, "questions: items"),
        ({"ahead": ["a", 0]}, "questions: ahead: the two items must differ"),
        ({"top": 7}, "questions: top must be at most the 6 items, not 7"),
        (
            {"mean_above": 0.1},
            "questions: mean_above: only a round for numbers has a mean, with items -1 and 1",
        ),
    ],
)
def test_rejects_question_about_other_items(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        parse_question("abcdef", fields)
    parse_question("abcdef", {"top": 6})


def test_share_of_tickets_is_below_one() -> None:
    oracle, tally = frequency_oracle("grr", 1.0, 5), Tally(np.full(5, 10), 50)
    result = partial(certificate_result, oracle, tally, confidence=0.95, questions=())
    assert result(malicious_tickets=49).malicious_share == 0.98
    with pytest.raises(ParameterError, match="below the number of reports, 50, not 50"):
        result(malicious_tickets=50)


@pytest.mark.parametrize("k", [1, D])
def test_nothing_is_certain_of_an_impossible_share(k: int) -> None:
    oracle, tally = frequency_oracle("oue", 1.0, D), tally_of(D * [10**6], 10**6)
    certificate = certify(oracle, tally, 0.01)
    assert not certificate.is_possible
    ranking = certificate.ranking(k)
    assert (ranking.certain, ranking.possible) == ((), tuple(range(D)))
    assert np.isnan([*certificate.total((1,)), *certificate.difference(1, 0)]).all()
    question = parse_question("abcdef", {"top": 1})
    result = certificate_result(
        oracle, tally, malicious_share=0.01, confidence=0.95, questions=[question]
    )
    assert (result.lower, result.upper, result.answers) == (None, None, [])
    assert result.least_malicious_share == certificate.least_malicious_share > 0.4


def test_region_of_a_share_is_kept() -> None:
    certificate = certify(frequency_oracle("oue", 1.0, D), tally_of(D * [30], 100), 0.1)
    assert certificate.region is certificate.region
    assert certificate.difference(2, 2) == (0.0, 0.0)
    with pytest.raises(ParameterError, match="every item must be an integer from 0 to 5, not 6"):
        certificate.difference(6, 6)
    with pytest.raises(ParameterError, match="k must be an integer from 1 to 6"):
        certificate.ranking(7)
    with pytest.raises(ParameterError, match="k must be an integer from 1 to 6"):
        certificate.ranking(0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"malicious_share": 1.0}, "malicious_share must be at least 0 and below 1, not 1.0"),
        ({"malicious_share": -0.1}, "malicious_share"),
        ({"malicious_share": float("nan")}, "malicious_share"),
        ({"confidence": 0.49}, "confidence must be at least 0.5 and below 1"),
        ({"confidence": 1.0}, "confidence"),
        ({"confidence": "high"}, "confidence must be at least 0.5"),
        ({"reports": tally_of(D * [0], 0)}, "at least one report"),
    ],
)
def test_parameters_outside_their_range(change: dict[str, object], words: str) -> None:
    tally, oracle = tally_of(D * [1], 2), frequency_oracle("oue", 1.0, D)
    arguments: dict[str, Any] = {"reports": tally, "malicious_share": 0.1}
    assert certify(oracle, **arguments, confidence=0.5).confidence == 0.5
    assert certify(oracle, **arguments).confidence == 0.95
    assert certify(oracle, tally, 0).least_malicious_share == 0
    with pytest.raises(ParameterError, match=words):
        certify(oracle, **arguments | change)


@pytest.mark.parametrize("item", [-1, D, 1.0, True, "a"])
def test_claims_are_of_the_items_of_the_round(item: Any) -> None:
    """An index of -1 would be the last item."""
    certificate = certify(frequency_oracle("oue", 1.0, D), tally_of(D * [1], 2), 0.1)
    for claim in (Ahead(item, 0), Ahead(0, item), MoreThan((item,), 0.1)):
        with pytest.raises(ParameterError, match="every item must be an integer from 0 to"):
            certificate.tolerance(claim)
