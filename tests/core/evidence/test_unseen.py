"""The largest gain that tests do not see: an exact linear programme, and its rounding."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog

from ldprecover import FrequencyOracle, frequency_oracle
from ldprecover.evidence.unseen import found_at, unseen_gain, unseen_gains
from ldprecover.protocols import GRR, OUE, SS, SUE


@pytest.mark.parametrize(
    ("oracle", "items", "gain"),
    [
        (OUE(0.5, 102), 5, 0.354),
        (OUE(0.5, 102), 10, 0.557),
        (OUE(0.5, 102), 20, 0.792),
        (OUE(1.0, 102), 10, 0.306),
        (OUE(2.0, 102), 10, 0.164),
        (SUE(1.0, 102), 10, 0.278),
    ],
)
def test_many_reports_leave_laws_without_pairs_and_triples(
    oracle: FrequencyOracle, items: int, gain: float
) -> None:
    """The moments of two and three items are zero then; by another programme."""
    assert unseen_gain(oracle, 10**18, items, 0.05).gain == pytest.approx(gain, abs=5e-4)


@pytest.mark.parametrize(
    ("protocol", "epsilon", "few", "many"),
    [
        ("oue", 0.5, 0.94, 0.72),
        ("oue", 1.0, 0.48, 0.37),
        ("oue", 2.0, 0.24, 0.19),
        ("sue", 1.0, 0.47, 0.36),
    ],
)
def test_noise_hides_more(protocol: str, epsilon: float, few: float, many: float) -> None:
    """Of 60,000 and of 400,000 reports."""
    oracle = frequency_oracle(protocol, epsilon, 102)
    gains = [unseen_gain(oracle, n, 10, 0.05).gain for n in (60_000, 400_000)]
    assert gains == pytest.approx([few, many], abs=0.006)


@pytest.mark.parametrize("protocol", ["oue", "sue", "olh", "ss", "llh"])
@pytest.mark.parametrize(
    ("epsilon", "items", "n"), [(0.5, 6, 10**6), (1, 20, 10**5), (8, 12, 10**5)]
)
def test_gain_is_that_of_a_general_solver(
    protocol: str, epsilon: float, items: int, n: int
) -> None:
    """By Gram and Schmidt's polynomials of the law of k items of an honest report."""
    oracle, share, k = frequency_oracle(protocol, epsilon, 102), 0.02, np.arange(items + 1)
    q = oracle.q
    law = [math.comb(items, i) * q**i * (1 - q) ** (items - i) for i in k]
    if isinstance(oracle, SS):
        law = oracle.laws.hits_of_others(np.arange(items)).tolist()
    h0 = np.array(law, np.longdouble)
    k, h0 = k[h0 > 0], h0[h0 > 0]
    rows: list[np.ndarray] = []
    for degree in range(min(4, k.size)):
        row = np.array(k, np.longdouble) ** degree
        for _ in range(2):
            row = row - sum((h0 @ (row * each)) * each for each in rows)
        rows.append(row / np.sqrt(h0 @ row**2))
    moments = math.sqrt(n) * share * np.array(rows[2:], float).reshape(-1, k.size)
    limits = np.full(2 * len(moments), found_at(102, items))
    best = linprog(-k, np.vstack([moments, -moments]), limits, np.ones((1, k.size)), [1.0])
    gain = share * (-best.fun - items * q) / (oracle.p - q)
    best_gain = unseen_gain(oracle, n, items, share)
    assert best_gain.gain == pytest.approx(min(gain, 1.0), rel=1e-5)
    assert best_gain.gain <= best_gain.untested <= 1


@pytest.mark.parametrize(
    ("oracle", "reads", "is_blind"),
    [
        (OUE(1.0, 102), True, False),
        (OUE(1.0, 102), False, True),
        (OUE(0.1, 102), True, True),
        (OUE(1.0, 3), True, True),
        (GRR(1.0, 20), True, True),
        (frequency_oracle("hr", 1.0, 102), True, True),
        (frequency_oracle("llh", 1.0, 102), True, False),
    ],
)
def test_tests_are_blind_to_counts_and_little_data(
    oracle: FrequencyOracle, reads: bool, is_blind: bool
) -> None:
    first, *_ = unseen_gains(oracle, 60_000, reads_reports=reads)
    assert first.items == min(10, oracle.domain_size // 2)
    assert first.is_blind is is_blind
    assert (first.gain > 0.99 * first.untested) is is_blind


def test_own_gain_of_grr_is_that_of_one_item_a_report() -> None:
    oracle = GRR(4.0, 20)
    gains = [each.gain for each in unseen_gains(oracle, 60_000, reads_reports=True)]
    assert gains == [pytest.approx(0.05 * (1 - 10 * oracle.q) / (oracle.p - oracle.q))]


def test_sentence_rounds_the_gain_up() -> None:
    ten = unseen_gain(OUE(1.0, 102), 400_000, 10, 0.05)
    assert ten.sentence() == (
        "An attack by 5 % that these tests cannot see moves ten items by up to 38 points together."
    )
    one = unseen_gain(OUE(1.0, 3), 400_000, 1, 0.03)
    assert one.sentence("we").startswith("An attack by 3 % that we cannot see moves one item by up")
    assert one.sentence().endswith(" points.")
