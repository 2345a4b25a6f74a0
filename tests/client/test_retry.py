import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldprecover_client import ArgumentError, Retries
from ldprecover_client.retries import Backoff, is_transient, retry_after_seconds


class Clock:
    """A clock that only tests advance."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.mark.parametrize("status", [408, 429, 500, 503, 507, 599])
def test_status_is_transient(status: int):
    assert is_transient(status)


@pytest.mark.parametrize("status", [200, 301, 400, 422, 501, 505])
def test_status_is_final(status: int):
    assert not is_transient(status)


@given(
    retry=st.integers(0, 10_000),
    draw=st.floats(0, 1, exclude_max=True),
    retry_after=st.none() | st.floats(0, allow_nan=False),
)
def test_delay_is_retry_after_plus_jitter(retry: int, draw: float, retry_after: float | None):
    policy = Retries(base=0.5, longest=30)
    floor = min(retry_after or 0, 30)
    widest = min(30, 0.5 * 2 ** min(retry, 100))
    assert policy.delay(retry, retry_after, draw) == pytest.approx(floor + draw * widest)


def test_backoff_ends_after_attempts():
    backoff = Backoff(
        policy=Retries(attempts=3, base=1, total=1e6), start=0.0, clock=Clock(), draw=lambda: 0.5
    )
    assert [backoff.after_failure() for _ in range(3)] == [0.5, 1.0, None]
    assert backoff.failures == 3


def test_backoff_ends_before_total():
    clock = Clock()
    backoff = Backoff(
        policy=Retries(attempts=100, base=8, longest=8, total=20),
        start=clock.now,
        clock=clock,
        draw=lambda: 1.0,
    )
    waits = []
    while (wait := backoff.after_failure()) is not None:
        waits.append(wait)
        clock.now += wait + 1  # each send takes a second
    assert waits == [8, 8]


@pytest.mark.parametrize(
    ("value", "date", "seconds"),
    [
        (None, None, None),
        ("0", None, 0.0),
        ("120", None, 120.0),
        ("9" * 400, None, math.inf),
        ("Fri, 31 Dec 1999 23:59:59 GMT", "Fri, 31 Dec 1999 23:59:29 GMT", 30.0),
        ("Fri, 31 Dec 1999 23:59:59 GMT", "Sat, 01 Jan 2000 00:00:00 GMT", 0.0),
        ("Fri, 31 Dec 1999 23:59:59 GMT", "nonsense", None),
        ("soon", None, None),
        ("1.5", None, None),
        ("٣", None, None),
        ("Fri, 99 Dec 99999 23:59:59 GMT", "Sat, 01 Jan 2000 00:00:00 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_date(value: str | None, date: str | None, seconds: float | None):
    assert retry_after_seconds(value, date) == seconds


def test_retry_after_date_falls_back_to_clock(monkeypatch):
    monkeypatch.setattr("ldprecover_client.retries.time.time", lambda: 946684769.0)
    assert retry_after_seconds("Fri, 31 Dec 1999 23:59:59 GMT") == 30.0


@given(st.text(max_size=40), st.none() | st.text(max_size=40))
def test_any_retry_after_header_is_parsed(value: str | None, date: str | None):
    seconds = retry_after_seconds(value, date)
    assert seconds is None or seconds >= 0


@pytest.mark.parametrize(
    "wrong",
    [{"attempts": 0}, {"base": -1}, {"longest": math.nan}, {"total": math.inf}, {"total": -0.1}],
)
def test_rejects_unbounded_policy(wrong: dict[str, Any]):
    with pytest.raises(ArgumentError, match=next(iter(wrong))):
        Retries(**wrong)
