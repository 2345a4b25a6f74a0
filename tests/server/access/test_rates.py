"""Rate limits of keys, by themselves and over HTTP."""

import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import samples_of
from tests.server.access.conftest import Clock, add_key, submit
from tests.server.conftest import InProcess, StartInProcess, problem_of

from ldprecover_server.access.rates import ReportRates
from ldprecover_server.errors import RateLimitedError

pytestmark = pytest.mark.sqlite


def refused(rates: ReportRates, reports: int, key: bytes = b"k") -> float:
    """Return the seconds a bucket asks to wait, 0 where it takes the reports."""
    try:
        rates.take(key, reports)
    except RateLimitedError as error:
        return error.retry_after
    return 0.0


def test_bucket_allows_burst_then_rate() -> None:
    clock = Clock()
    rates = ReportRates(10, 100, clock=clock)
    assert refused(rates, 60) == refused(rates, 40) == 0
    assert refused(rates, 1) == pytest.approx(0.1)
    clock.now += 5
    assert refused(rates, 51) == pytest.approx(0.1)
    assert refused(rates, 50) == 0
    clock.now += 1e6  # it does not fill further
    assert refused(rates, 100) == refused(rates, 100, b"another") == 0
    assert refused(rates, 1) > 0


def test_submission_above_burst_needs_a_full_bucket() -> None:
    clock = Clock()
    rates = ReportRates(10, 100, clock=clock)
    assert refused(rates, 1) == 0
    assert refused(rates, 250) == pytest.approx(0.1)
    clock.now += 0.1
    assert refused(rates, 250) == 0
    assert refused(rates, 1) == pytest.approx(15.1), "150 of debt, and one more"
    clock.now += 15.1
    assert refused(rates, 1) == 0


# On a busy machine inputs are generated slowly too.
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    st.floats(0.01, 1e6),
    st.integers(1, 1000),
    st.lists(st.tuples(st.integers(1, 3000), st.floats(0, 100)), min_size=1, max_size=40),
)
def test_no_key_exceeds_burst_and_rate_and_waiting_suffices(
    rate: float, burst: int, sent: list[tuple[int, float]]
) -> None:
    """Over any time: at most the burst, the rate, and the last submission where that is larger than
    the burst.
    """
    clock = Clock()
    rates = ReportRates(rate, burst, clock=clock)
    taken = 0
    for reports, pause in sent:
        clock.now += pause
        if wait := refused(rates, reports):
            clock.now += wait * (1 + 1e-9) + 1e-9
            assert refused(rates, reports) == 0
        taken += reports
        allowed = max(burst, reports) + rate * (clock.now - 1000)
        assert taken <= allowed * (1 + 1e-6) + 1e-6 * rate


def rejections(app: InProcess) -> float:
    return sum(
        s.value
        for s in samples_of(app.get("/metrics").text)
        if s.name.endswith("refusals_total") and s.labels["reason"] == "rate-limited"
    )


# No test takes as long as one more token.
SLOW: dict[str, Any] = {"report_rate": 1e-3, "report_burst": 10}


def test_rate_limited_key_gets_retry_after_and_stores_nothing(
    start_in_process: StartInProcess,
) -> None:
    app = start_in_process(**SLOW)
    id, headers = app.open_round(), add_key(app, "report")
    began = time.monotonic()
    assert submit(app, id, 7, headers).status_code == 202
    late = submit(app, id, 6, headers)
    elapsed = time.monotonic() - began
    assert problem_of(late) == "rate-limited"
    assert 3000 - elapsed <= int(late.headers["retry-after"]) <= 3000, (
        "three tokens, a thousand seconds each"
    )
    assert app.get(f"/rounds/{id}/frequencies").json()["counts"] == [0, 7, 0, 0]
    assert rejections(app) == 1
    assert submit(app, id, 3, headers).status_code == 202


def test_rate_limit_applies_to_each_key_and_admins(start_in_process: StartInProcess) -> None:
    app = start_in_process(**SLOW)
    id, one, two = (
        app.open_round(access="key"),
        add_key(app, "report", "one"),
        add_key(app, "report", "two"),
    )
    assert [submit(app, id, 10, headers).status_code for headers in (one, two, app.admin)] == 3 * [
        202
    ]
    assert [submit(app, id, 1, headers).status_code for headers in (one, two, app.admin)] == 3 * [
        429
    ]


def test_anonymous_callers_and_tickets_are_not_limited(start_in_process: StartInProcess) -> None:
    app = start_in_process(**SLOW | {"report_burst": 1})
    id = app.open_round()
    assert [submit(app, id, 1, {}).status_code for _ in range(5)] == 5 * [202]
    ticketed = app.open_round(access="ticket")
    answers = [
        submit(app, ticketed, 1, {"Authorization": f"Ticket {ticket}"})
        for ticket in app.mint(f"/rounds/{ticketed}", 5)
    ]
    assert [answer.status_code for answer in answers] == 5 * [202]


def test_other_rejections_take_no_token(start_in_process: StartInProcess) -> None:
    app = start_in_process(**SLOW)
    id, headers = app.open_round(), add_key(app, "report")
    malformed = [
        app.post(f"/rounds/{id}/reports", json={"reports": 10 * [9]}, headers=headers)
        for _ in range(3)
    ]
    assert [answer.status_code for answer in malformed] == 3 * [422]
    assert submit(app, id, 10, headers).status_code == 202


def test_rejected_retry_counts_once_when_accepted(start_in_process: StartInProcess) -> None:
    """It takes its tokens again: only the commit finds the duplicate."""
    app = start_in_process(**SLOW | {"report_burst": 4})
    id, first, second = (
        app.open_round(),
        add_key(app, "report", "one"),
        add_key(app, "report", "two"),
    )
    assert submit(app, id, 4, first, "k").json()["duplicate"] is False
    assert submit(app, id, 4, first, "k").status_code == 429
    assert submit(app, id, 4, second, "k").json() == {"round": id, "accepted": 4, "duplicate": True}
    assert submit(app, id, 1, second).status_code == 429
    assert app.get(f"/rounds/{id}").json()["n"] == 4


def test_rate_is_unlimited_by_default(in_process: InProcess) -> None:
    id = in_process.open_round()
    assert [submit(in_process, id, 20_000, in_process.admin).status_code for _ in range(3)] == 3 * [
        202
    ]
