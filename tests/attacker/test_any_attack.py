"""Any attack on any protocol: valid reports of the expected kind, or a refusal that says why."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.attacker.strategies import TOO_FEW_ITEMS, attacks, items_are_alike, oracles, refusal
from tests.randomness import rng

from ldprecover import OLH, FrequencyOracle, ParameterError, Tally
from ldprecover_attacker import APA, APA2


@pytest.mark.slow
@given(st.data(), oracles(), st.integers(0, 40))
def test_m_valid_reports_or_a_refusal_with_its_reason(
    data: st.DataObject, oracle: FrequencyOracle, m: int
) -> None:
    attack = data.draw(attacks(oracle.domain_size))
    reason = refusal(attack, oracle)
    if reason:
        with pytest.raises(ParameterError, match=reason):
            attack.reports(oracle, m, rng())
        with pytest.raises(ParameterError, match=reason):
            attack.support(oracle, rng())
        return
    reports = attack.reports(oracle, m, rng())
    assert reports.dtype == np.empty(0, oracle.wire.dtype).dtype
    oracle.wire.check(reports)
    assert Tally.of(oracle, reports).n == m
    assert attack.reports(oracle, m, rng()).tobytes() == reports.tobytes()


@pytest.mark.slow
@given(st.data(), oracles(max_size=12))
def test_certain_supports_hold_in_every_report(
    data: st.DataObject, oracle: FrequencyOracle
) -> None:
    """Where pi is 0 or 1 there is no chance in it. A report of a fixed size has it, whatever the
    attack.
    """
    attack = data.draw(attacks(oracle.domain_size))
    if refusal(attack, oracle):
        return
    pi = attack.support(oracle, rng())
    supports = oracle.supports(attack.reports(oracle, 30, rng()))
    assert not supports[:, pi == 0].any()
    assert supports[:, pi == 1].all()
    if oracle.fixed_size is not None:
        assert pi.sum() == pytest.approx(oracle.fixed_size)
        assert attack.support_sum(oracle, rng()) == pytest.approx(1)


@pytest.mark.slow
@given(st.data(), oracles(max_size=16))
def test_expectations_are_probabilities(data: st.DataObject, oracle: FrequencyOracle) -> None:
    """Of more items some have too many sets for the laws of HR and LLH: see `average_over_sets`."""
    attack = data.draw(attacks(oracle.domain_size))
    if refusal(attack, oracle):
        return
    pi = attack.support(oracle, rng())
    assert pi.min() >= 0
    assert pi.max() <= 1 + 1e-9
    everyone = list(range(oracle.domain_size))
    uniform = np.full(oracle.domain_size, 1 / oracle.domain_size)
    gain = attack.gain(oracle, uniform, 0.1, targets=everyone, rng=rng())
    assert gain == pytest.approx(0.1 * (attack.support_sum(oracle, rng()) - 1))


@given(st.data(), oracles().filter(items_are_alike))
def test_expectations_follow_the_items_when_they_are_relabelled(
    data: st.DataObject, oracle: FrequencyOracle
) -> None:
    """An attack on the relabelled targets supports the relabelled items; what is secret has no
    label.
    """
    d = oracle.domain_size
    targets = data.draw(st.lists(st.integers(0, d - 1), min_size=1, max_size=d, unique=True))
    order = data.draw(st.permutations(range(d)))
    for make in (APA, APA2):
        attack, relabelled = make(targets, search=5), make([order[t] for t in targets], search=5)
        if not refusal(attack, oracle):
            pi, moved = attack.support(oracle), relabelled.support(oracle)
            assert moved[order] == pytest.approx(pi)


def test_an_olh_refusal_is_not_one_of_its_search() -> None:
    """With nothing but other buckets to choose from, the search still gives reports."""
    oracle = OLH(0.5, 3, 65_536)
    with pytest.raises(ParameterError, match=TOO_FEW_ITEMS):
        APA([0, 1]).reports(oracle, 5, rng())
    oracle.wire.check(APA2([0, 1]).reports(oracle, 5, rng()))
