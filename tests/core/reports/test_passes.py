"""Passes over reports: methods and alarms give what plain code gives on all reports."""

import itertools
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.core.recovery import poisoned_round
from tests.core.recovery.poisoned_round import ORACLES, TARGETS, D, estimates_of

from ldprecover import OUE, ParameterError, Recovery, RecoveryRequest, ReportError, Tally, recover
from ldprecover.recovery import METHODS, RecoveryInputs, run_method
from ldprecover.recovery.methods.kmeans import two_means
from ldprecover.recovery.methods.likelihood import counts_likelihood
from ldprecover.reports import ReportSource, source

OPTIONS = {"k-means": {"subsets": 5}, "ldprecover-km": {"subsets": 5}, "em": {"iterations": 6}}
READING = [name for name, method in METHODS.items() if "reports" in method.needs]
READ = [
    pytest.param(protocol, name, id=f"{name}-{protocol}")
    for protocol, oracle in ORACLES.items()
    for name in READING
    if METHODS[name].unfit(oracle) is None
]
UNARY = pytest.mark.parametrize("protocol", ["oue", "olh"])
ROWS = 1_000


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports of a round make many blocks, of 1000 each and a smaller one."""
    monkeypatch.setattr(source, "_CELLS", ROWS * D)


def poisoned(protocol: str) -> np.ndarray:
    """Return honest reports and those of two attackers."""
    return poisoned_round.poisoned(ORACLES[protocol], *TARGETS).reports


def recovered(
    protocol: str,
    name: str,
    source: Any = None,
    rows: np.ndarray | None = None,
    times: int = 1,
    **fields: object,
) -> Recovery:
    """Return the recovery from the rows, by default `poisoned`; `source` has them some times."""
    oracle = ORACLES[protocol]
    rows = poisoned(protocol) if rows is None else rows
    targets = TARGETS[0][:1] if name == "conditional-probability" else TARGETS[0]
    arguments: dict[str, Any] = {"targets": targets, "options": OPTIONS.get(name, {}), **fields}
    tally = Tally.of(oracle, rows)
    return recover(
        oracle,
        rows if source is None else source,
        RecoveryRequest(name, **arguments),
        tally=Tally(tally.summary * times, tally.n * times),
    )


def in_arrays(rows: np.ndarray, size: int) -> Callable[[], Iterator[np.ndarray]]:
    return lambda: (rows[i : i + size] for i in range(0, len(rows), size))


def same(one: Recovery, other: Recovery, rtol: float = 0.0, atol: float = 0.0) -> None:
    assert one.notes == other.notes
    assert one.eta == other.eta
    for name in ("malicious", "genuine", "recovered"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=rtol, atol=atol)


def test_rejects_reports_that_change_between_passes() -> None:
    sizes = itertools.chain([1_500], itertools.repeat(1_499))
    source = ReportSource(OUE(1, D), lambda: iter([np.zeros((next(sizes), 8), np.uint8)]))
    source.tally()
    with pytest.raises(ParameterError, match="in their tally, not 1500 and then 1499"):
        source.tally()


def test_rejects_a_source_of_another_oracle() -> None:
    source = ReportSource(OUE(2, D), poisoned("oue"))
    with pytest.raises(ParameterError, match=r"reports are of the oracle OUE\(epsilon=2\.0"):
        recover(ORACLES["oue"], source, "fiad")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in READING if name != "em"])
def test_memory_of_a_method_does_not_grow_with_reports(name: str) -> None:
    """40 more blocks raise the largest memory by less than a byte for each of their reports.

    fiad stores a number for each abnormal set: here only the whole group can be one.
    """
    rows = poisoned("oue")[:ROWS]
    fields = {"options": {"least": 12}} if name == "fiad" else {}

    def peak(blocks: int) -> int:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        recovered("oue", name, lambda: itertools.repeat(rows, blocks), rows, blocks, **fields)
        return tracemalloc.get_traced_memory()[1] - before

    recovered("oue", name, rows, rows)  # fill caches first
    tracemalloc.start()
    try:
        assert peak(60) - peak(20) < 40 * ROWS
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("protocol", "name", "n", "options", "dropped"),
    [
        ("oue", "fiad", 23_000, {"least": 4, "rate": 0.01}, 3006),
        ("olh", "fiad", 23_000, {"least": 4, "rate": 0.01}, 2268),
        ("olh", "fiad", 23_000, {"least": 2, "rate": 0.3}, 3098),
        ("olh", "fiad", 1_500, {"least": 4, "rate": 0.01}, 181),
        ("oue", "diffstats", 23_000, {}, 4038),
        ("olh", "diffstats", 23_000, {}, 0),
    ],
)
def test_drops_as_many_reports_as_a_plain_implementation(
    protocol: str, name: str, n: int, options: dict[str, Any], dropped: int
) -> None:
    """Which held the patterns and sizes of all reports in memory, as published.

    Of 1,500 reports the result depends on the standard errors by which pairs are linked.
    """
    rows = poisoned(protocol)[:n]
    result = recovered(protocol, name, rows, rows, options=options)
    assert result.eta == pytest.approx(dropped / (n - dropped))


@UNARY
def test_subsets_follow_one_stream_of_numbers(protocol: str) -> None:
    oracle, rows = ORACLES[protocol], poisoned(protocol)
    chosen = [rows[np.random.default_rng([7, s]).random(len(rows)) < 0.3] for s in range(5)]
    estimates = np.stack([estimates_of(oracle, part) for part in chosen])
    second = two_means(estimates)
    larger = ~second if second.sum() * 2 <= 5 else second
    result = recovered(protocol, "k-means", options={"subsets": 5, "rate": 0.3, "seed": 7})
    np.testing.assert_array_equal(result.genuine, estimates[larger].mean(axis=0))


@UNARY
def test_em_takes_the_steps_that_it_does_in_double_precision(protocol: str) -> None:
    oracle, rows = ORACLES[protocol], poisoned(protocol)
    bits, lift = oracle.supports(rows).astype(float), np.expm1(oracle.epsilon)
    estimates = estimates_of(oracle, rows)
    f = 0.9 * counts_likelihood(oracle, estimates) + 0.1 / D
    for _ in range(6):
        weights = 1 / (1 + lift * (bits @ f))
        f = f * (weights.sum() + lift * (weights @ bits)) / len(rows)
        f /= f.sum()
    result = recovered(protocol, "em")
    np.testing.assert_allclose(result.recovered, f, rtol=1e-4, atol=1e-7)
    assert "the limit of 6 steps came first" in result.notes[0]


def test_em_holds_no_more_bits_than_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """2000 reports of 64 bits are held and one more is not."""
    monkeypatch.setattr("ldprecover.recovery.methods.likelihood._MAX_BITS", 2_000 * 64)
    rows = poisoned("oue")
    recovered("oue", "em", rows=rows[:2_000])
    with pytest.raises(
        ParameterError, match="em holds 60 bits a report: there are too many reports for it"
    ):
        recovered("oue", "em", rows=rows[:2_001])


@pytest.mark.parametrize("name", READING)
def test_error_without_reports(name: str) -> None:
    oracle, request = ORACLES["oue"], RecoveryRequest(name, targets=TARGETS[0][:1])
    source = ReportSource(oracle, lambda: iter(()))
    with pytest.raises(ParameterError, match=r"no reports|too few reports, 0|all 0 reports"):
        run_method(RecoveryInputs(oracle, np.full(D, 1 / D), request, reports=source))


def test_progress_is_reported_after_each_block() -> None:
    progress: list[tuple[int, int]] = []
    source = ReportSource(
        OUE(1, D),
        np.zeros((2_500, 8), np.uint8),
        progress=lambda *numbers: progress.append(numbers),
    )
    assert source.n is None
    for number in range(2):
        source.tally()
        assert progress[3 * number :] == [(number, 1_000), (number, 2_000), (number, 2_500)]
    assert source.n == 2_500


def test_position_of_a_bad_report_is_among_all_reports() -> None:
    rows, oracle = np.zeros(2_500, "<u4"), ORACLES["grr"]
    rows[2_345] = D
    with pytest.raises(ReportError) as error:
        ReportSource(oracle, in_arrays(rows, 700)).tally()
    assert error.value.position == 2_345


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "name"), READ)
def test_recovery_is_the_same_from_any_source(
    protocol: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the bit; but em adds floats, in an order that depends on the size of a block."""
    rows = poisoned(protocol)
    whole = recovered(protocol, name)
    for size in (333, 7_001):
        same(whole, recovered(protocol, name, in_arrays(rows, size)))
    monkeypatch.setattr(source, "_CELLS", 1 << 22)
    order = {"rtol": 1e-4, "atol": 1e-7} if name == "em" else {}
    same(whole, recovered(protocol, name), **order)
