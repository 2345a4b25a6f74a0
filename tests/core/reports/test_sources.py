"""What recover takes: reports, a tally or frequencies; and its warning about counts alone."""

import warnings
from typing import Any

import numpy as np
import pytest

from ldprecover import CountsAloneWarning, ParameterError, RecoveryRequest, Tally, recover
from ldprecover.evidence.alarms import raise_alarms
from ldprecover.protocols import GRR, OUE
from ldprecover.reports import ReportSource

ORACLE = OUE(1, 20)
REPORTS = ORACLE.perturb(np.arange(3000) % 7, np.random.default_rng(4))
TALLY = Tally.of(ORACLE, REPORTS)
RSN = RecoveryRequest("norm", options={"variant": "rsn"})
FREQUENCIES = ORACLE.estimate(TALLY.counts(ORACLE), TALLY.n)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["norm-sub", "diffstats", "auto"])
def test_reports_need_no_tally(name: str) -> None:
    result = recover(ORACLE, ReportSource(ORACLE, REPORTS), name)
    counted = recover(ORACLE, REPORTS, name, tally=TALLY)
    assert result.recovered.tolist() == counted.recovered.tolist()
    assert result.notes == counted.notes
    assert result.poisoned.tolist() == FREQUENCIES.tolist()


def test_a_tally_stands_for_its_frequencies_and_n() -> None:
    by_tally, by_frequencies = (
        recover(ORACLE, TALLY, RSN),
        recover(ORACLE, FREQUENCIES.tolist(), RSN, n=TALLY.n),
    )
    assert by_tally.recovered.tolist() == by_frequencies.recovered.tolist()


def test_rejects_reports_that_are_not_those_of_the_tally() -> None:
    wrong: tuple[Any, ...] = (REPORTS[1:], lambda: [REPORTS] * 2, ReportSource(ORACLE, REPORTS[:0]))
    for reports in wrong:
        with pytest.raises(ParameterError, match="in their tally, not 3000 and then"):
            recover(ORACLE, reports, "unmix", tally=TALLY)
        with pytest.raises(ParameterError, match="in their tally, not 3000 and then"):
            raise_alarms(ORACLE, TALLY, reports)


def test_a_given_tally_saves_the_pass_that_counts() -> None:
    def never() -> list[Any]:
        raise AssertionError("read")

    assert recover(ORACLE, never, "norm-sub", tally=TALLY).poisoned.tolist() == FREQUENCIES.tolist()


@pytest.mark.parametrize(
    ("reports", "fields", "reason"),
    [
        (TALLY, {"n": 3000}, "n is for frequencies alone"),
        (REPORTS, {"n": 3000}, "n is for frequencies alone"),
        (np.arange(20), {}, "reports must be n rows"),
        (REPORTS[:0], {}, "report"),
        (None, {}, "frequencies must be"),
    ],
)
def test_rejects_what_is_neither(reports: Any, fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(ParameterError, match=reason):
        recover(ORACLE, reports, "norm-sub", **fields)


@pytest.mark.parametrize("request_", ["auto", "unmix", RecoveryRequest("unmix", targets=[1])])
def test_warns_of_counts_alone(request_: str | RecoveryRequest) -> None:
    with pytest.warns(CountsAloneWarning, match="unmix got counts alone") as raised:
        recover(ORACLE, TALLY, request_)
    assert [warning.filename for warning in raised] == [__file__]


@pytest.mark.parametrize(
    ("oracle", "reports", "name"),
    [
        (ORACLE, REPORTS, "unmix"),
        (ORACLE, TALLY, "ldprecover"),
        (GRR(1, 20), Tally(np.arange(20), 190), "unmix"),  # its counts hold all of its reports
    ],
)
def test_does_not_warn_without_a_loss(oracle: Any, reports: Any, name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", CountsAloneWarning)
        recover(oracle, reports, name)
