"""Where a summary is the histogram of the reports, it takes their place."""

from typing import Any

import numpy as np
import pytest
from tests.core.recovery.poisoned_round import play

from ldprecover import (
    GRR,
    OUE,
    FrequencyOracle,
    ParameterError,
    Recovery,
    RecoveryRequest,
    Tally,
    recover,
)
from ldprecover.evidence.alarms import raise_alarms
from ldprecover.protocols.hr import HR
from ldprecover.protocols.llh import LLH
from ldprecover.recovery import METHODS
from ldprecover.reports import ReportSource
from ldprecover.reports.sample import Sample
from ldprecover_attacker import MGA

D, N, M = 40, 20_000, 1_500
TARGETS = (4, 9, 17, 28)
ORACLES: dict[str, FrequencyOracle] = {"grr": GRR(1, D), "hr": HR(1, D), "llh": LLH(1, D, 3)}
READING = [name for name, method in METHODS.items() if "reports" in method.needs]
READ = [
    (protocol, name)
    for protocol, oracle in ORACLES.items()
    for name in (*READING, "unmix")
    if METHODS[name].unfit(oracle) is None
]
every_protocol = pytest.mark.parametrize("protocol", ORACLES)


def reports_of(protocol: str) -> Any:
    """Return honest reports and those of an attacker, shuffled."""
    round = play(ORACLES[protocol], np.arange(D, 0, -1), N, MGA(TARGETS), m=M)
    return np.random.default_rng(3).permutation(round.data)


def recovered(protocol: str, name: str, reports: Any) -> Recovery:
    number = {"conditional-probability": 1, "unmix": 0}.get(name)
    request = RecoveryRequest(name, targets=TARGETS[:number])
    return recover(ORACLES[protocol], reports, request)


@pytest.mark.parametrize(("protocol", "name"), READ)
def test_recovery_from_a_tally_is_that_from_reports(protocol: str, name: str) -> None:
    oracle, reports = ORACLES[protocol], reports_of(protocol)
    result = recovered(protocol, name, Tally.of(oracle, reports))
    for source in (reports, lambda: np.array_split(reports[::-1], 7)):
        other = recovered(protocol, name, source)
        assert (result.notes, result.eta) == (other.notes, other.eta)
        for vector in ("malicious", "genuine", "recovered"):
            np.testing.assert_array_equal(getattr(result, vector), getattr(other, vector))


@every_protocol
def test_alarms_from_a_tally_are_those_from_reports(protocol: str) -> None:
    oracle, reports = ORACLES[protocol], reports_of(protocol)
    tally = Tally.of(oracle, reports)
    alarms = raise_alarms(oracle, tally, ReportSource.of_tally(oracle, tally))
    assert alarms == raise_alarms(oracle, tally, ReportSource(oracle, reports))


def test_draws_of_equal_reports_are_binomial() -> None:
    """Half of them are drawn, within 7 standard deviations, and the others remain.

    9.4 are missed once in 100.
    """
    oracle, n = ORACLES["llh"], 1_000_000
    single = Sample(oracle, np.array([0, 3], oracle.wire.dtype), np.array([n, n]))
    rng = np.random.default_rng(1)
    chosen, rest = single.split(single.draw(0.5, rng))
    assert chosen.tally() + rest.tally() == single.tally()
    assert chosen.multiplicities is not None
    assert np.abs(chosen.multiplicities - n / 2).max() < 7 * np.sqrt(n / 4)


def test_a_histogram_is_read_once() -> None:
    reports, reads = reports_of("llh"), 0

    def arrays() -> list[np.ndarray]:
        nonlocal reads
        reads += 1
        return [reports]

    recovered("llh", "fiad", arrays)
    assert reads == 1


@pytest.mark.parametrize(
    ("oracle", "reason"),
    [
        (LLH(0.5, 102, 3), "594 of the 729 different llh reports support 33 or 34 items"),
        (LLH(4, 102, 53), "146,068 of the 148,877 different llh reports support 1 or 2 items"),
        (HR(1, 127), "127 of the 128 different hr reports support 62 or 63 items"),
    ],
)
def test_diffstats_says_that_most_sizes_are_usual(oracle: FrequencyOracle, reason: str) -> None:
    assert METHODS["diffstats"].unfit(oracle) == (
        f"{reason}, so a crafted one need not stand out by its size"
    )


def test_a_tally_of_other_protocols_has_no_reports() -> None:
    oracle = OUE(1, D)
    with pytest.raises(ParameterError, match="a tally of oue reports does not determine them"):
        ReportSource.of_tally(oracle, Tally.empty(D))


def test_rejects_a_tally_that_is_no_histogram() -> None:
    summary = np.zeros(D, np.int64)
    summary[:2] = 5
    with pytest.raises(ParameterError, match="the tally is not the histogram of 9 grr reports"):
        ReportSource.of_tally(ORACLES["grr"], Tally(summary, 9))
