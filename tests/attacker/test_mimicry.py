"""Mimicry: it gains what is predicted, and no alarm is raised more often than without an attack."""

import numpy as np
import pytest

from ldprecover import ParameterError, Tally, frequency_oracle
from ldprecover.certificate.undetectable import undetectable
from ldprecover.distributions import binomial_threshold
from ldprecover.evidence.alarms import raise_alarms
from ldprecover.protocols import PROTOCOLS
from ldprecover.reports import ReportSource
from ldprecover_attacker import Mimicry

D, SHARE = 102, 0.05
STATISTICAL = pytest.mark.statistical
ZIPF = 1 / np.arange(5, D + 5) / (1 / np.arange(5, D + 5)).sum()


@pytest.mark.slow
@pytest.mark.parametrize(
    "epsilon", [1.0, *(pytest.param(e, marks=STATISTICAL) for e in (0.5, 2.0))]
)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_gain_is_the_largest_that_nothing_detects(protocol: str, epsilon: float) -> None:
    """To .02. That reports have the expected support is tested of all attacks together."""
    oracle = frequency_oracle(protocol, epsilon, D)
    for targets in ([7], list(range(5, D, 10))):
        attack = Mimicry(targets, share=SHARE, frequencies=ZIPF.tolist())
        predicted = undetectable(oracle, ZIPF, targets, SHARE).gain
        assert abs(attack.gain(oracle, ZIPF, SHARE) - predicted) < 0.02


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_round_looks_like_an_honest_one_of_other_frequencies(protocol: str) -> None:
    """In the support of each item, to what no report can take away."""
    oracle, targets = frequency_oracle(protocol, 1.0, D), [4, 60]
    result = undetectable(oracle, ZIPF, targets, SHARE)
    assert result.frequencies.min() >= -1e-9
    malicious = Mimicry(targets, share=SHARE, frequencies=ZIPF.tolist()).support(oracle)
    together = (1 - SHARE) * oracle.laws.honest_support(ZIPF) + SHARE * malicious
    honest = oracle.laws.honest_support(result.frequencies)
    assert together == pytest.approx(honest, abs=0.02 * (oracle.p - oracle.q))
    if protocol in ("grr", "ss", "hr"):  # where every report counts, exactly
        assert together == pytest.approx(honest, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "protocol",
    [
        protocol if protocol in ("grr", "oue") else pytest.param(protocol, marks=STATISTICAL)
        for protocol in PROTOCOLS
    ],
)
def test_no_alarm_is_raised_more_often_than_its_rate(protocol: str) -> None:
    """Over 12 rounds; more alarms than the limit have a probability of 1e-6 without an attack.

    The limit is below 12 alarms: one that is raised in every round fails the test.
    An alarm raised in a third of the rounds is missed.
    """
    oracle, n, rate = frequency_oracle(protocol, 1.0, D), 19_000, 0.01
    attack = Mimicry(range(5, D, 10), share=SHARE, frequencies=ZIPF.tolist())
    raised = number = 0
    for seed in range(12):
        rng = np.random.default_rng([seed, 9])
        honest = oracle.perturb(rng.choice(D, n, p=ZIPF), rng)
        reports = np.concatenate([honest, attack.reports(oracle, n // 19, rng)])
        alarms = raise_alarms(
            oracle, Tally.of(oracle, reports), ReportSource(oracle, reports), rate=rate
        )
        raised += sum(alarm.raised for alarm in alarms)
        number += len(alarms)
    limit = binomial_threshold(number, rate, 1e-6)
    assert limit < 12 <= number
    assert raised < limit


def test_rejects_frequencies_that_do_not_fit() -> None:
    with pytest.raises(ParameterError, match="frequencies must be 102 numbers"):
        Mimicry([1], frequencies=[0.5, 0.5]).support(frequency_oracle("grr", 1.0, D))
