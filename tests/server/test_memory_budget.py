"""The memory budget: reservations and release; and when callers come back that find it full."""

from collections import Counter

import pytest

from ldprecover_server import Settings, limits
from ldprecover_server.errors import BusyError
from ldprecover_server.limits import UNWRITTEN_BYTES, MemoryBudget, ReturnTimes
from ldprecover_server.rounds import LABELS_BYTES

PROMISED_BYTES = 400 << 20
"""The most that a server takes under attack above its start, as threat-model.md says."""


def test_reserves_up_to_limit() -> None:
    budget = MemoryBudget(10)
    assert budget.reserve(6)
    assert not budget.reserve(5)
    assert budget.reserve(4)
    budget.release(6)
    assert budget.reserve(6)


def test_default_budgets_sum_to_less_than_promised() -> None:
    settings = Settings()
    budgets = (
        settings.queue_bytes,
        settings.analyses * settings.analysis_bytes,
        limits.ANALYSIS_CACHE_BYTES,
        LABELS_BYTES,
        UNWRITTEN_BYTES,
    )
    assert sum(budgets) <= PROMISED_BYTES


def test_holds_until_the_block_ends_or_fails() -> None:
    budget = MemoryBudget(10)
    with budget.hold(10):
        assert budget.reserved == 10
    assert budget.reserved == 0
    with pytest.raises(BusyError, match="10 bytes"), budget.hold(10), budget.hold(1):
        pytest.fail("there is no room")
    assert budget.reserved == 0


def test_10000_busy_callers_come_back_over_seconds() -> None:
    """A second gets at most 550 of them on average; 700 is six standard deviations more."""
    times = ReturnTimes(clock=lambda: 0.0)
    seconds = Counter(int(times.seconds(1)) for _ in range(10_000))
    assert min(seconds) == 1
    assert max(seconds.values()) < 700
