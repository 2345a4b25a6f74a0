"""The sentence that says how exact a round will be."""

import math

import pytest
from scipy import stats

from ldprecover import frequency_oracle
from ldprecover.planning import accuracy
from ldprecover.planning.accuracy import _CLIENT_EPSILON, _rounded_up
from ldprecover_client.reporter import MAX_EPSILON


def test_sentence_names_margin_and_ways_to_one_point() -> None:
    expected = accuracy(290, 1.0, 5000)
    assert str(expected) == (
        "With 5,000 people each share is ± 5.4 points (95 %), a large one up to ± 5.6; smaller "
        "shares drown in the noise. The average share, 0.34 points, does. To see it, 5,000 people "
        "need ε 5.4 (clients send at most 2 unless told), or at most 19 items. For "
        "± 1 point: 145,000 people."
    )
    assert not accuracy(19, 1.0, 5000).drowns
    assert not accuracy(290, 5.4, 5000).drowns
    assert accuracy(290, 5.3, 5000).drowns
    assert expected == accuracy(290, 1.0, 5000, ["llh"])  # the best of all
    assert accuracy(290, 1.0, 5000, ["grr"]).margin > 5 * expected.margin
    assert "With 1 person each share is ± 360 points" in str(accuracy(20, 1.0, 1))
    assert "need ε 1.9, or" in str(accuracy(4, 1.5, 25))
    equal = accuracy(20, 1.0, 4950)
    assert not equal.drowns, "both are 5 points as shown"
    assert (equal.epsilon_for_share, equal.items_for_share) == (None, None)
    assert MAX_EPSILON == _CLIENT_EPSILON
    assert expected.drowns
    few = accuracy(50, 2.0, 20_000, ["grr"])
    assert few.items_for_point is not None
    assert f"or at most {few.items_for_point} items." in str(few)
    exact = accuracy(5, 1.0, 1_000_000)
    assert not exact.drowns
    assert (exact.epsilon_for_share, exact.items_for_share) == (None, None)
    assert "For" not in str(exact)
    assert [_rounded_up(n) for n in (7, 99, 100, 999, 1_230, 1_231, 12_345)] == [
        *(7, 99, 100, 999, 1_230, 1_240, 12_400)
    ]
    assert str(_rounded_up(7)) == "7"


@pytest.mark.parametrize("protocol", ["grr", "oue"])
def test_numbers_give_a_margin_of_one_point(protocol: str) -> None:
    d, epsilon, users = 50, 2.0, 20_000
    expected = accuracy(d, epsilon, users, [protocol])

    def margin(items: int, n: int) -> float:
        oracle = frequency_oracle(protocol, epsilon, items)
        return 1.96 * math.sqrt(float(oracle.variance(1 / items, n)))

    assert expected.margin == pytest.approx(margin(d, users), rel=1e-3)
    oracle = frequency_oracle(protocol, epsilon, d)
    largest = max(float(oracle.variance(f / 100, users)) for f in range(101))
    assert expected.largest_margin == pytest.approx(1.96 * math.sqrt(largest), rel=1e-3)
    assert expected.users_for_point is not None
    assert margin(d, expected.users_for_point) == pytest.approx(0.01, rel=1e-3)
    if items := expected.items_for_point:
        assert margin(items, users) <= 0.01 * 1.001 < margin(items + 1, users) * 1.002


def test_margin_of_a_question_is_of_the_shares_of_all_people() -> None:
    """Who answers is drawn without replacement: the variance of the hypergeometric law is added."""
    users, questions = 10_000, 5
    expected = accuracy(2, 2.0, users, ["grr"], questions=questions)
    n = users // questions
    sampling = stats.hypergeom(users, users // 2, n).var() / n**2 * (users - 1) / users
    variance = float(frequency_oracle("grr", 2.0, 2).variance(0.5, n)) + sampling
    assert expected.margin == pytest.approx(1.959963985 * math.sqrt(variance))
    assert expected.largest_margin == pytest.approx(expected.margin), "largest at one half"
    enough = accuracy(2, 2.0, expected.users_for_point or 0, ["grr"], questions=questions)
    assert enough.margin == pytest.approx(0.01, rel=1e-3)
    assert enough.margin <= 0.01
