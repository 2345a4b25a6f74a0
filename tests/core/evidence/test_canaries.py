"""Canaries: the shift they measure, its exact law under honest reports, and its alarm."""

import numpy as np
import pytest

from ldprecover import (
    GRR,
    OUE,
    FrequencyOracle,
    ParameterError,
    RecoveryRequest,
    Tally,
    frequency_oracle,
    recover,
)
from ldprecover.distributions import sum_law
from ldprecover.evidence.alarms import Alarm, raise_alarms
from ldprecover.evidence.canaries import CanaryShift, canary_shift
from ldprecover.items import MAX_CANARIES
from ldprecover.reports import tally_sampler

D, K = 30, 4
CANARIES = tuple(range(D - K, D))
USERS = np.append(np.arange(D - K, 0, -1), np.zeros(K, int)) * 40
PROTOCOLS = ["grr", "oue", "olh", "sue", "ss"]


def is_outside(shift: CanaryShift, rate: float) -> bool:
    """Return whether the alarm is raised, without the other alarms, which take longer."""
    low, high = shift.bounds(rate)
    return not low <= shift.supported <= high


def alarm(oracle: FrequencyOracle, tally: Tally, rate: float = 1e-3) -> Alarm:
    alarms = raise_alarms(oracle, tally, rate=rate, canaries=CANARIES)
    (one,) = (each for each in alarms if each.name == "canaries")
    return one


@pytest.mark.parametrize("bits", [0, D], ids=["none", "all"])
def test_reports_that_shift_all_items_alike_raise_the_alarm(bits: int) -> None:
    """2,000 reports of no items, or of all, among 14,040: the shift is q/(p - q), or (1 - q)/(p -
    q), times 1/8.
    """
    oracle, rng = OUE(1.0, D), np.random.default_rng(3)
    honest = tally_sampler(oracle).honest_tally(USERS, rng)
    fake = Tally(np.full(D, 2_000 if bits else 0, np.int64), 2_000)
    shift = canary_shift(oracle, honest + fake, CANARIES)
    share = fake.n / (honest.n + fake.n)
    expected = share * ((bits > 0) - oracle.q) / (oracle.p - oracle.q)
    assert abs(shift.mean - expected) < 6 * shift.standard_deviation
    assert alarm(oracle, honest + fake, 1e-9).raised


def test_poisoned_canaries_show_the_attack_not_the_shift() -> None:
    """Reports of the canaries alone raise them, and shift nothing else."""
    oracle = OUE(1.0, D)
    honest = tally_sampler(oracle).honest_tally(USERS, np.random.default_rng(4))
    fake = np.zeros(D, np.int64)
    fake[list(CANARIES)] = 500
    shift = canary_shift(oracle, honest + Tally(fake, 500), CANARIES)
    assert shift.mean > 6 * shift.standard_deviation


def test_protocol_without_a_law_of_canaries_has_no_canary_alarm() -> None:
    oracle = frequency_oracle("hr", 1.0, D)  # the rows of 27 and 28 add up to that of another item
    tally = tally_sampler(oracle).honest_tally(USERS, np.random.default_rng(5))
    assert "canaries" not in [each.name for each in raise_alarms(oracle, tally, canaries=CANARIES)]
    with pytest.raises(ParameterError, match="hr lacks a law"):
        canary_shift(oracle, tally, CANARIES)
    assert "canaries" in [each.name for each in raise_alarms(oracle, tally, canaries=CANARIES[-1:])]


def test_a_shift_needs_canaries_and_reports() -> None:
    oracle = OUE(1.0, D)
    with pytest.raises(ParameterError, match="name one canary"):
        canary_shift(oracle, Tally.empty(D), ())
    with pytest.raises(ParameterError, match="at least one report"):
        canary_shift(oracle, Tally.empty(D), CANARIES)


@pytest.mark.parametrize(
    ("canaries", "reason"),
    [
        ((-1,), "every canary must be an integer of at least 0"),
        ((150,), "every canary must be"),
        (("a",), "every canary must be"),
        (5, "canaries must be a list"),
        (range(MAX_CANARIES + 1), "canaries must be at most 100 items, not 101"),
    ],
)
def test_canaries_are_indices_of_the_items(canaries: object, reason: str) -> None:
    def recovered() -> None:
        request = RecoveryRequest("norm-sub", canaries=canaries)  # type: ignore[arg-type]
        recover(OUE(1.0, 150), np.full(150, 1 / 150), request, n=100)

    with pytest.raises(ParameterError, match=reason):
        recovered()


def test_canaries_leave_two_items() -> None:
    with pytest.raises(ParameterError, match="at least two other items"):
        recover(GRR(1.0, 3), np.full(3, 1 / 3), RecoveryRequest("norm-sub", canaries=[1, 2]), n=100)
    assert RecoveryRequest(canaries=[2, 2]).canaries == (2,)


@pytest.mark.parametrize("method", ["ldprecover", "norm-sub"])
def test_recoveries_without_use_for_canaries_say_so(method: str) -> None:
    oracle, f = OUE(1.0, D), np.full(D, 1 / D)
    plain, other = (
        recover(oracle, f, RecoveryRequest(method, canaries=canaries), n=100)
        for canaries in ((), CANARIES)
    )
    assert any("canaries" in note for note in other.notes)
    assert other.recovered.tolist() == plain.recovered.tolist()


@pytest.mark.parametrize("protocol", ["grr", "oue"])
@pytest.mark.parametrize("n", [1, 3, 20])
def test_exact_rate_holds_for_a_handful_of_reports(protocol: str, n: int) -> None:
    oracle = frequency_oracle(protocol, 1.0, D)
    first, law = sum_law(oracle.laws.hits_of_others(np.array(CANARIES)), n)
    rate = 0.0
    for supported, share in zip(first + np.arange(law.size), law, strict=True):
        counts = np.zeros(D, np.int64)
        counts[list(CANARIES)] = np.diff(np.linspace(0, supported, K + 1).astype(int))
        if counts.max() <= n:
            outside = is_outside(canary_shift(oracle, Tally(counts, n), CANARIES), 0.05)
            rate += share * outside
            if share > 1e-3:
                assert alarm(oracle, Tally(counts, n), 0.05).raised == outside
    assert rate <= 0.05


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_shift_has_mean_0_and_its_deviation_under_its_law(protocol: str) -> None:
    oracle, n = frequency_oracle(protocol, 1.0, D), 50
    shifts = []
    for supported in range(2):
        counts = np.zeros(D, np.int64)
        counts[D - 1] = supported
        shifts.append(canary_shift(oracle, Tally(counts, n), CANARIES))
    none, one = shifts
    means = none.mean + (one.mean - none.mean) * (none.first + np.arange(none.law.size))
    assert none.law @ means == pytest.approx(0, abs=1e-12)
    assert none.law @ means**2 == pytest.approx(none.standard_deviation**2)
    assert (none.supported, one.supported) == (0, 1)
