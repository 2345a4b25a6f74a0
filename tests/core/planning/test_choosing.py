"""Which protocol is chosen for a round, and why."""

from itertools import groupby

import numpy as np
import pytest

from ldprecover import ParameterError, frequency_oracle
from ldprecover.planning.choosing import candidate, choose, proposed_retention


@pytest.mark.parametrize(
    ("d", "epsilon", "n", "expected"),
    [
        (2, 0.5, 10_000, "grr"),
        (4, 1.0, 10_000, "grr"),
        (10, 4.0, 10_000, "grr"),
        (8, 1.0, 1_000_000, "ss"),
        (64, 0.5, 10_000, "ss"),
        (64, 0.5, 1_000_000, "llh"),
        (102, 2.0, 400_000, "llh"),
        (100_000, 0.2, 10_000_000, "llh"),
        (100_000, 4.0, 10_000_000, "olh"),
    ],
)
def test_the_choice_for_a_round(d: int, epsilon: float, n: int, expected: str) -> None:
    assert choose(d, epsilon, n).best.oracle.protocol == expected


@pytest.mark.parametrize(
    ("d", "epsilon", "n", "expected"),
    [(8, 4.0, 10**4, "grr"), (64, 0.5, 10**6, "ss"), (490, 1.0, 10**6, "olh")],
)
def test_stored_reports_should_name_attacked_items(
    d: int, epsilon: float, n: int, expected: str
) -> None:
    """Within 1.1 times the least variance; fewer items than about 3 e^epsilon leave GRR alone."""
    choice = choose(d, epsilon, n)
    assert choice.best_if_stored.oracle.protocol == expected
    least = min(each.standard_error for each in choice.candidates if each.oracle.is_proposed)
    assert choice.best_if_stored.standard_error**2 <= 1.1 * least**2
    assert choose(d, epsilon, n, ["hr"]).best_if_stored.oracle.protocol == "hr"


@pytest.mark.parametrize(("d", "n"), [(4, 1_000), (102, 10**6), (100_000, 10**6), (9_000, 10**9)])
def test_score_is_the_stated_sum_of_logarithms(d: int, n: int) -> None:
    """Relative to the least of all: a quarter for the gain, a twentieth for each other cost."""
    candidates = choose(d, 1.0, n).candidates
    variance, gain, size, tests, stored = (
        np.log(costs / costs.min())
        for costs in (
            np.array([each.standard_error**2 for each in candidates]),
            np.array([each.gain for each in candidates]),
            np.array([max(each.report_size, 8) for each in candidates]),
            np.array([1 + each.hash_tests / 1e10 for each in candidates]),
            np.array([max(each.stored_bytes, 1e6) for each in candidates]),
        )
    )
    expected = variance + gain / 4 + (size + tests + stored) / 20
    np.testing.assert_allclose([each.score for each in candidates], expected, atol=1e-12)
    assert {each.targets for each in candidates} == {min(10, d // 2)}
    (alone,) = choose(d, 1.0, n, ["olh"]).candidates
    assert alone.score == 0


@pytest.mark.parametrize("d", [2, 8, 102, 10_000, 100_000])
@pytest.mark.parametrize("epsilon", [0.2, 0.5, 1.0, 3.0, 6.0])
def test_llh_of_a_large_variance_and_hr_come_last(d: int, epsilon: float) -> None:
    limit = 1.05 * float(frequency_oracle("oue", epsilon, d).variance(0, 1))
    ranking = [each.oracle for each in choose(d, epsilon, 10**8).candidates]
    proposed = [oracle.is_proposed for oracle in ranking]
    assert proposed == sorted(proposed, reverse=True)
    for oracle in ranking:
        too_large = oracle.protocol == "llh" and float(oracle.variance(0, 1)) > limit
        assert oracle.is_proposed == (oracle.protocol != "hr" and not too_large)


@pytest.mark.parametrize(
    ("protocol", "stored", "retention"),
    [
        ("grr", 8 * 102, "none"),
        ("hr", 8 * 128, "none"),
        ("llh", 8 * 3**6, "none"),
        ("olh", 8 * 102 + 6 * 10**6, "forever"),
        ("oue", 8 * 102 + 13 * 10**6, "forever"),
    ],
)
def test_histograms_store_the_same_for_any_users(
    protocol: str, stored: int, retention: str
) -> None:
    oracle = frequency_oracle(protocol, 0.5, 102)
    assert candidate(oracle, 10**6, 10).stored_bytes == stored
    assert (candidate(oracle, 10**12, 10).stored_bytes == stored) == (retention == "none")
    assert proposed_retention(oracle) == retention


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.5, 1.0, 2.0])
def test_choice_does_not_depend_on_the_targets(epsilon: float) -> None:
    """From one number of items to the next nothing changes: past 200 items each protocol has one
    stretch.
    """
    chosen = [choose(d, epsilon, 10_000).best.oracle.protocol for d in range(200, 310)]
    assert len(set(chosen)) == 1
    actual = [choose(round(1.3**i), epsilon, 10_000).best.oracle.protocol for i in range(3, 44)]
    assert [name for name, _ in groupby(actual)] == list(dict.fromkeys(actual))


@pytest.mark.parametrize("n", [0, -1, 2.5, True, "many"])
def test_number_of_users_must_be_positive(n: object) -> None:
    with pytest.raises(ParameterError, match="number of users"):
        choose(10, 1.0, n)  # type: ignore[arg-type]
