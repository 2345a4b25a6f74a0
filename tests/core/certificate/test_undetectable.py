"""The largest gain that no test detects: by linear programming over all reports, in closed form."""

import itertools
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.optimize import linprog
from tests.core.protocols.listed import listed

from ldprecover import FrequencyOracle, ParameterError, frequency_oracle
from ldprecover.certificate.undetectable import undetectable
from ldprecover.protocols import LLH, OUE, PROTOCOLS
from ldprecover.protocols.laws import Laws


def report_laws(oracle: FrequencyOracle) -> np.ndarray:
    """Return P(report | item), up to a factor for each report, of all reports."""
    law = listed(oracle)[1]
    return np.unique((law / law.max(axis=0)).T.round(12), axis=0)


def programme(laws: np.ndarray, cost: np.ndarray, base: np.ndarray, scale: float) -> float:
    """Return the least cost of x in the simplex with sum_v (base + scale x)_v R_v >= 0."""
    one = np.ones((1, cost.size))
    return float(linprog(cost, -scale * laws, laws @ base, one, [1.0]).fun)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_gain_and_floor_are_those_of_the_linear_programme(protocol: str, seed: int) -> None:
    rng = np.random.default_rng([seed, *protocol.encode()])
    d, epsilon = int(rng.choice([2, 3, 5, 8])), float(rng.choice([0.3, 1.0, 3.0]))
    oracle = frequency_oracle(protocol, epsilon, d, 2 if protocol == "olh" else None)
    share = float(rng.choice([0.01, 0.05, 0.2]))
    f = rng.dirichlet(np.full(d, rng.choice([0.3, 1.0, 10.0])))
    targets = rng.choice(d, int(rng.integers(1, d)), replace=False)
    laws, cost = report_laws(oracle), np.isin(np.arange(d), targets).astype(float)
    result = undetectable(oracle, f, targets.tolist(), share)
    highest = -programme(laws, -cost, -(1 - share) * f, 1.0)
    least, largest = (sign * programme(laws, sign * cost, f, share - 1) for sign in (1, -1))
    assert result.gain == pytest.approx(highest - cost @ f, abs=1e-4)
    assert result.floor == pytest.approx(largest - least, abs=1e-4)
    added = result.frequencies - (1 - share) * f
    assert (laws @ added >= -1e-6).all()
    assert result.frequencies.min() >= -1e-9
    assert result.frequencies.sum() == pytest.approx(1)


@pytest.mark.parametrize("targets", [1, 3, 7])
@pytest.mark.parametrize("protocol", ["oue", "olh", "sue"])
def test_many_other_items_equal_one_item_that_supports_no_target(
    protocol: str, targets: int
) -> None:
    """The programme over all patterns of the targets, of users who hold one of them or none."""
    oracle, share, d = frequency_oracle(protocol, 1.0, 200), 0.05, 200
    p, q = oracle.p, oracle.q
    patterns = np.array(list(itertools.product([0, 1], repeat=targets)))
    laws = np.where(patterns, q, 1 - q).prod(axis=1)[:, None] * np.where(
        patterns, p / q, (1 - p) / (1 - q)
    )
    laws = np.column_stack([laws, np.where(patterns, q, 1 - q).prod(axis=1)])
    f, cost = np.full(targets + 1, 1 / d), np.ones(targets + 1)
    f[-1], cost[-1] = 1 - targets / d, 0
    highest = -programme(laws, -cost, -(1 - share) * f, 1.0)
    result = undetectable(oracle, np.full(d, 1 / d), range(targets), share)
    assert result.gain == pytest.approx(highest - targets / d, abs=1e-9)


@pytest.mark.parametrize(("epsilon", "least"), [(0.5, 16), (1.0, 18)])
def test_sixteen_items_or_more_average_out(epsilon: float, least: int) -> None:
    """More at a large epsilon: their part in a report's likelihood must be faint."""
    for number in (least - 1, least):
        oracle, share = OUE(epsilon, number + 1), 0.05
        gain = undetectable(oracle, np.full(number + 1, 1 / (number + 1)), [3], share).gain
        average = share * ((1 - oracle.q) / (oracle.p - oracle.q) - 1 / (number + 1))
        assert (gain == pytest.approx(average)) is (number == least)
        assert gain <= average * (1 + 1e-9)


def test_ratio_follows_from_p_and_q_where_no_law_is_known() -> None:
    @dataclass(frozen=True)
    class Plain(OUE):
        @property
        def laws(self) -> Laws:
            return replace(super().laws, likelihood_ratio=None)

    f = np.full(40, 1 / 40)
    plain, usual = (undetectable(kind(1.0, 40), f, [3, 4], 0.05) for kind in (Plain, OUE))
    assert (plain.gain, plain.floor) == pytest.approx((usual.gain, usual.floor))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_gain_takes_no_more_than_the_other_items_have(protocol: str) -> None:
    oracle = frequency_oracle(protocol, 0.5, 60)
    f = np.append(np.full(2, 0.49), np.full(58, 0.02 / 58))
    result = undetectable(oracle, f, [0, 1], 0.2)
    # beta + (1 - beta) of the others' frequency - beta f_T is all there is to gain.
    assert result.gain == pytest.approx(0.02, abs=1e-4)
    assert result.frequencies[:2].sum() == pytest.approx(1, abs=1e-4)


def test_rejects_what_does_not_fit() -> None:
    oracle, f = frequency_oracle("oue", 1.0, 20), np.full(20, 0.05)
    with pytest.raises(ParameterError, match="malicious_share must be at least 0 and below 1"):
        undetectable(oracle, f, [1], 1.0)
    with pytest.raises(ParameterError, match="frequencies must be 20 numbers of at least 0"):
        undetectable(oracle, f[:-1], [1], 0.1)
    for wrong in ((1 + 1.5e-6) * f, f * np.append(-1, np.full(19, 21 / 19))):
        with pytest.raises(ParameterError, match="frequencies must be 20 numbers of at least 0"):
            undetectable(oracle, wrong, [1], 0.1)
    undetectable(oracle, (1 + 7e-7) * f, [1], 0.1)
    with pytest.raises(ParameterError, match="from 0 to 19, not 20"):
        undetectable(oracle, f, [20], 0.1)


@pytest.mark.parametrize("d", [4, 7])
def test_no_share_of_reports_gains_nothing_undetected(d: int) -> None:
    f = np.arange(1.0, d + 1)
    assert undetectable(LLH(0.6, d, 3), f / f.sum(), [1, 2], 0.0).gain == pytest.approx(0)
