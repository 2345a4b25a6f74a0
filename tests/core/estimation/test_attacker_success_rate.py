"""The attacker success rate: enumerated reports, the formulas of LDP Toolbox, and its bound."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from ldprecover import LLH, FrequencyOracle, frequency_oracle
from ldprecover.estimation.theory import attacker_success_rate
from ldprecover.protocols import PROTOCOLS
from ldprecover.protocols.grr import GRR

EPSILONS = (0.01, 0.5, 1.0, 2.0, 4.0, 10.0)


def likelihoods(oracle: FrequencyOracle) -> np.ndarray:
    """Return P(z | v) of every report z (rows) and item v, from the definition of the protocol."""
    d, e, own = oracle.domain_size, math.exp(oracle.epsilon), oracle.own
    items = range(d)
    match oracle.protocol:
        case "grr":
            supports = [{z} for z in items]
        case "oue" | "sue":
            p, q = (
                (0.5, 1 / (e + 1))
                if oracle.protocol == "oue"
                else (math.sqrt(e) / (math.sqrt(e) + 1), 1 / (math.sqrt(e) + 1))
            )
            bits = np.array(list(product((0, 1), repeat=d)))
            ones = np.where(np.eye(d, dtype=bool), p, q)  # of item v's user, bit i: [v, i]
            return np.stack(
                [np.where(bits == 1, ones[v], 1 - ones[v]).prod(axis=1) for v in items], axis=1
            )
        case "ss":
            supports = [set(z) for z in combinations(items, own["subset_size"])]
        case "olh":  # every function from items to buckets is equally likely
            g = own["hash_range"]
            supports = [
                {v for v in items if f[v] == y}
                for f in product(range(g), repeat=d)
                for y in range(g)
            ]
        case "hr":
            columns = 1 << d.bit_length()
            supports = [
                {v for v in items if ((v + 1) & y).bit_count() % 2 == 0} for y in range(columns)
            ]
        case "llh":
            assert isinstance(oracle, LLH)
            g, k = oracle.hash_range, oracle.digits
            digits = [[v // g**i % g for i in range(k)] for v in items]
            supports = [
                {v for v in items if sum(a * b for a, b in zip(r, digits[v], strict=True)) % g == y}
                for r in product(range(g), repeat=k)
                for y in range(g)
            ]
    # A report is e^epsilon times as likely under the items that it supports.
    weights = np.array([[e if v in z else 1.0 for v in items] for z in supports])
    return weights / weights.sum(axis=0)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_is_that_of_the_best_guess_from_every_report(protocol: str) -> None:
    # At a large epsilon the default has too many hash functions to enumerate.
    own = 3 if protocol in ("olh", "llh") else None
    for d, epsilon in product((2, 3, 5), EPSILONS):
        oracle = frequency_oracle(protocol, epsilon, d, own)
        laws = likelihoods(oracle)
        assert laws.sum(axis=0) == pytest.approx(1)
        best = laws.max(axis=1).sum() / d
        assert attacker_success_rate(oracle) == pytest.approx(best, rel=1e-12), oracle


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("d", [2, 10, 102])
def test_agrees_with_ldp_toolbox(d: int, epsilon: float) -> None:
    """`get_asr` of ldp-toolbox (github.com/hharcolezi/ldp-toolbox, src/ldp_toolbox/protocols).

    Its formulas are those of arXiv:2503.01482: exact for GRR, SS and unary encoding.
    """
    e, root, i = math.exp(epsilon), math.exp(epsilon / 2), np.arange(1, d + 1)
    k = max(1, round(d / (e + 1)))
    oue, sue = 1 / (e + 1), 1 / (root + 1)
    expected = {
        "grr": e / (e + d - 1),
        "ss": e / (k * e + d - k),
        "oue": (1 - oue) ** (d - 1) / (2 * d)
        + (stats.binom.pmf(i - 1, d - 1, oue) / (2 * i)).sum(),
        "sue": sue * (1 - sue) ** (d - 1) / d
        + (stats.binom.pmf(i - 1, d - 1, sue) * (1 - sue) / i).sum(),
    }
    for protocol, rate in expected.items():
        oracle = frequency_oracle(protocol, epsilon, d)
        assert attacker_success_rate(oracle) == pytest.approx(rate, rel=1e-9), protocol


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_of_local_hashing_is_near_the_paper_for_many_items(epsilon: float) -> None:
    """arXiv:2503.01482 has p/max(d/g, 1), as if the support had its mean size d/g."""
    for protocol in ("olh", "llh"):
        oracle = frequency_oracle(protocol, epsilon, 1024)
        approximate = oracle.p / (oracle.domain_size * oracle.q)
        assert attacker_success_rate(oracle) == pytest.approx(approximate, rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_is_between_a_blind_guess_and_that_of_grr(protocol: str) -> None:
    for d, epsilon in product((2, 102, 100_000), EPSILONS):
        rate = attacker_success_rate(frequency_oracle(protocol, epsilon, d))
        assert 1 / d < rate <= GRR(epsilon, d).p * (1 + 1e-9)


def test_is_the_bound_for_a_protocol_without_laws() -> None:
    class Unknown(GRR):
        traits = type(GRR.traits)()

    assert attacker_success_rate(Unknown(1.0, 10)) == pytest.approx(GRR(1.0, 10).p)
