"""Passes over reports: what methods and alarms make of sums is what plain code makes of all reports
at once.
"""

import itertools
import math
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest

from ldprecover import (
    GRR,
    OLH,
    OUE,
    FrequencyOracle,
    ParameterError,
    Recovery,
    RecoveryRequest,
    ReportError,
    Tally,
    recover,
)
from ldprecover.evidence.alarms import Alarm, raise_alarms
from ldprecover.laws.distributions import chi_squared_normal
from ldprecover.recovery import METHODS, ReportSource, reports
from ldprecover.recovery.methods.diffstats import _chi_squared, _supports_none
from ldprecover.recovery.methods.fiad import _supersets
from ldprecover.recovery.methods.kmeans import two_means
from ldprecover.recovery.methods.likelihood import counts_likelihood
from ldprecover_attacker import MGA

D, N, M = 60, 20_000, 1_500
TARGETS = ((7, 19, 22, 31, 40, 51), (3, 9, 14, 29, 35, 58))  # of two attackers
ORACLES = {"grr": GRR(1, D), "oue": OUE(1, D), "olh": OLH(1, D, 4)}
OPTIONS = {"k-means": {"subsets": 5}, "ldprecover-km": {"subsets": 5}, "em": {"iterations": 6}}
READING = [
    pytest.param(protocol, name, id=f"{name}-{protocol}")
    for protocol, oracle in ORACLES.items()
    for name, method in METHODS.items()
    if "reports" in method.needs
    and method.unfit(oracle) is None
    and (protocol, name[:13]) != ("grr", "detection-all")
]
UNARY = pytest.mark.parametrize("protocol", ["oue", "olh"])
ROWS = 1_000


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports of a round make many blocks, of 1000 each and a smaller one."""
    monkeypatch.setattr(reports, "_CELLS", ROWS * D)


@pytest.fixture(scope="module")
def processes() -> Iterator[Executor]:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        yield executor


def poisoned(protocol: str) -> np.ndarray:
    """Return N honest reports and M crafted ones of each of two attackers, shuffled. Seeded."""
    oracle, rng = ORACLES[protocol], np.random.default_rng(11)
    weights = 1 / np.arange(1, D + 1)
    parts = [oracle.perturb(rng.choice(D, N, p=weights / weights.sum()), rng)]
    parts += [MGA(targets).reports(oracle, M, rng) for targets in TARGETS]
    rows = np.concatenate(parts)
    rng.shuffle(rows)
    return rows


def recovered(protocol: str, name: str, given: Any, rows: np.ndarray, **fields: object) -> Recovery:
    oracle = ORACLES[protocol]
    tally = Tally.of(oracle, rows)
    targets = TARGETS[0][:1] if name == "conditional-probability" else TARGETS[0]
    arguments: dict[str, Any] = {"targets": targets, "options": OPTIONS.get(name, {}), **fields}
    return recover(
        oracle,
        oracle.estimate(tally.counts(oracle), tally.n),
        RecoveryRequest(name, **arguments),
        reports=given,
    )


def in_arrays(rows: np.ndarray, size: int) -> Callable[[], Iterator[np.ndarray]]:
    return lambda: (rows[i : i + size] for i in range(0, len(rows), size))


def same(one: Recovery, other: Recovery) -> None:
    assert one.notes == other.notes
    assert one.eta == other.eta
    for name in ("malicious", "genuine", "recovered"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes()


@pytest.mark.parametrize(("protocol", "name"), READING)
def test_recovery_does_not_depend_on_the_arrays(protocol: str, name: str) -> None:
    rows = poisoned(protocol)
    whole = recovered(protocol, name, rows, rows)
    for size in (333, 1_000, 7_001):
        same(whole, recovered(protocol, name, in_arrays(rows, size), rows))


@pytest.mark.parametrize(("protocol", "name"), READING)
def test_recovery_does_not_depend_on_the_block_size(
    protocol: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for em, which adds floats: to the accuracy of its single precision."""
    rows = poisoned(protocol)
    one = recovered(protocol, name, rows, rows)
    monkeypatch.setattr(reports, "_CELLS", 1 << 22)
    other = recovered(protocol, name, rows, rows)
    if name == "em":
        np.testing.assert_allclose(one.recovered, other.recovered, rtol=1e-4, atol=1e-7)
    else:
        same(one, other)


@pytest.mark.parametrize(("protocol", "name"), READING)
def test_a_recovery_is_the_same_from_other_processes(
    protocol: str, name: str, processes: Executor
) -> None:
    """Whatever measures a block is pickled. em's products of floats are of whatever library a
    process has.
    """
    rows = poisoned(protocol)
    here = recovered(protocol, name, rows, rows)
    there = recovered(
        protocol, name, ReportSource(ORACLES[protocol], rows, executor=processes), rows
    )
    if name == "em":
        np.testing.assert_allclose(here.recovered, there.recovered, rtol=0, atol=1e-15)
    else:
        same(here, there)


@dataclass(frozen=True, eq=False)
class _Part:
    rows: np.ndarray
    n: int

    def arrays(self) -> Iterator[np.ndarray]:
        return (self.rows[i : i + 333] for i in range(0, len(self.rows), 333))


def in_parts(rows: np.ndarray, size: int) -> list[_Part]:
    return [
        _Part(part, len(part)) for part in (rows[i : i + size] for i in range(0, len(rows), size))
    ]


@pytest.mark.parametrize(("protocol", "name"), READING)
def test_recovery_is_the_same_from_parts_in_other_processes(
    protocol: str, name: str, processes: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks are of two parts, the last of one; em adds in another order than without parts."""
    monkeypatch.setattr(reports, "_TASK_CELLS", 10_000 * D)
    rows, oracle = poisoned(protocol), ORACLES[protocol]
    parts = in_parts(rows, 5_000)
    whole = recovered(protocol, name, rows, rows)
    here = recovered(protocol, name, ReportSource.of_parts(oracle, parts), rows)
    there = recovered(
        protocol, name, ReportSource.of_parts(oracle, parts, executor=processes), rows
    )
    if name == "em":
        np.testing.assert_allclose(here.recovered, whole.recovered, rtol=1e-4, atol=1e-7)
        np.testing.assert_allclose(here.recovered, there.recovered, rtol=0, atol=1e-15)
    else:
        same(here, whole)
        same(here, there)


def test_em_holds_nothing_of_reports_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ldprecover.recovery.methods.likelihood._MAX_BITS", 1 << 16)
    rows, oracle = poisoned("oue"), ORACLES["oue"]
    with pytest.raises(ParameterError, match="too many reports"):
        recovered("oue", "em", rows, rows)
    assert (
        recovered(
            "oue", "em", ReportSource.of_parts(oracle, in_parts(rows, 5_000)), rows
        ).recovered.sum()
        > 0.999
    )


def test_a_part_with_another_number_of_reports_is_refused() -> None:
    source = ReportSource.of_parts(ORACLES["grr"], [_Part(np.zeros(1_500, "<u4"), 1_501)])
    with pytest.raises(ParameterError, match="a part has 1500 reports, and should have 1501"):
        source.tally()


def test_position_of_a_bad_report_counts_all_parts() -> None:
    rows = np.zeros(2_500, "<u4")
    rows[2_345] = D
    with pytest.raises(ReportError) as caught:
        ReportSource.of_parts(ORACLES["grr"], in_parts(rows, 700)).tally()
    assert caught.value.position == 2_345


def test_progress_is_told_after_each_task_of_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "_TASK_CELLS", 1_000 * D)
    told: list[tuple[int, int]] = []
    parts = in_parts(np.zeros(2_500, "<u4"), 700)
    ReportSource.of_parts(
        ORACLES["grr"], parts, progress=lambda passes, read: told.append((passes, read))
    ).tally()
    assert told == [(0, 1_400), (0, 2_500)]


@pytest.mark.parametrize("protocol", ORACLES)
def test_alarms_are_the_same_from_other_processes(protocol: str, processes: Executor) -> None:
    rows, oracle = poisoned(protocol), ORACLES[protocol]

    def alarms(executor: Executor | None) -> tuple[Alarm, ...]:
        return raise_alarms(
            oracle, Tally.of(oracle, rows), ReportSource(oracle, rows, executor=executor)
        )

    assert alarms(processes) == alarms(None)


def test_few_blocks_wait_and_sums_are_in_order() -> None:
    """Three workers: at most six blocks are read and not yet added, however the workers overtake
    each other.
    """
    oracle, rows = ORACLES["grr"], np.arange(20 * ROWS, dtype="<u4") % D
    read, most = 0, 0

    def arrays() -> Iterator[np.ndarray]:
        nonlocal read
        for i in range(0, len(rows), ROWS):
            read += ROWS
            yield rows[i : i + ROWS]

    def progress(passes: int, added: int) -> None:
        nonlocal most
        most = max(most, read - added)

    with ThreadPoolExecutor(3) as threads:
        source = ReportSource(oracle, arrays, executor=threads, progress=progress)
        firsts = source.total_indexed(lambda oracle, block, first: [(first, int(block[0]))])
    assert firsts == [(i, i % D) for i in range(0, len(rows), ROWS)]
    assert most <= 5 * ROWS  # as it is told, one of the six has been added


def test_progress_is_told_after_each_block() -> None:
    told: list[tuple[int, int]] = []
    rows = np.zeros(2_500, "<u4")
    source = ReportSource(
        ORACLES["grr"], rows, progress=lambda passes, read: told.append((passes, read))
    )
    assert source.n is None
    source.tally()
    source.tally()
    assert told == [(0, 1_000), (0, 2_000), (0, 2_500), (1, 1_000), (1, 2_000), (1, 2_500)]
    assert source.n == 2_500


class _Late(Executor):
    """Runs nothing: what has been submitted waits until the test looks at it."""

    _max_workers = 2

    def __init__(self) -> None:
        self.futures: list[Future[object]] = []

    def submit(self, call: object, /, *args: object, **kwargs: object) -> Future[object]:  # type: ignore[override]
        self.futures.append(Future())
        if len(self.futures) == 1:
            self.futures[0].set_exception(ArithmeticError("in the first block"))
        return self.futures[-1]


def test_error_in_a_block_cancels_the_waiting_blocks() -> None:
    late = _Late()
    with pytest.raises(ArithmeticError, match="in the first block"):
        ReportSource(ORACLES["grr"], np.zeros(9_000, "<u4"), executor=late).tally()
    assert len(late.futures) == 4
    assert all(future.cancelled() for future in late.futures[1:])


def test_reports_that_change_between_passes_are_refused() -> None:
    sizes = itertools.chain([1_500], itertools.repeat(1_499))
    source = ReportSource(ORACLES["grr"], lambda: iter([np.zeros(next(sizes), "<u4")]))
    source.tally()
    with pytest.raises(ParameterError, match="the same in each pass, not 1500 and then 1499"):
        source.tally()


def test_a_source_of_another_oracle_is_refused() -> None:
    source = ReportSource(OUE(2, D), poisoned("oue"))
    with pytest.raises(ParameterError, match=r"reports are of the oracle OUE\(epsilon=2\.0"):
        recover(ORACLES["oue"], np.zeros(D), "fiad", reports=source)


def test_the_position_of_a_bad_report_is_among_all_reports() -> None:
    rows = np.zeros(2_500, "<u4")
    rows[2_345] = D
    with pytest.raises(ReportError) as caught:
        ReportSource(ORACLES["grr"], in_arrays(rows, 700)).tally()
    assert caught.value.position == 2_345


@pytest.mark.parametrize(
    "name", [name for name, method in METHODS.items() if "reports" in method.needs]
)
def test_without_reports_a_method_says_so(name: str) -> None:
    with pytest.raises(ParameterError, match=r"no reports|too few reports, 0|all 0 reports"):
        recovered("oue", name, lambda: iter(()), poisoned("oue"))


@pytest.mark.parametrize(("protocol", "name"), [p for p in READING if p.values[1] != "em"])
def test_memory_of_a_method_does_not_grow_with_reports(protocol: str, name: str) -> None:
    """The most memory allocated at once for 40 blocks more is greater by less than a byte for each
    report more.

    fiad holds a number for each of the sets of a group, and finds groups of its 12 items at most
    only among many reports.
    """
    rows = poisoned(protocol)[:ROWS]
    few = 150 if name == "fiad" else 20

    def peak(blocks: int) -> int:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        recovered(protocol, name, lambda: itertools.repeat(rows, blocks), rows)
        return tracemalloc.get_traced_memory()[1] - before

    recovered(protocol, name, rows, rows)  # what is made once is not counted
    tracemalloc.start()
    try:
        assert peak(few + 40) - peak(few) < 40 * ROWS
    finally:
        tracemalloc.stop()


@UNARY
def test_fiad_drops_what_it_does_with_all_patterns_in_memory(protocol: str) -> None:
    """Two groups are found, one after the other; with other options, hundreds of sets."""
    oracle, rows = ORACLES[protocol], poisoned(protocol)
    tally = Tally.of(oracle, rows)
    items = np.sort(np.argsort(-tally.counts(oracle), kind="stable")[:24])
    patterns = oracle.supports(rows)[:, items] @ (1 << np.arange(24))
    for least, rate in ((4, 0.01), (2, 0.3)):
        masks = _abnormal_masks(oracle, patterns, least, rate)
        bad = np.any([patterns & mask == mask for mask in masks], axis=0)
        result = recovered(protocol, "fiad", rows, rows, options={"least": least, "rate": rate})
        _drops(result, oracle, rows, bad)
        assert f": {len(masks)} are abnormal" in result.notes[0]
        assert {*TARGETS[0], *TARGETS[1]} <= set(
            items[np.bitwise_or.reduce(masks) >> np.arange(24) & 1 == 1]
        )


def _drops(result: Recovery, oracle: FrequencyOracle, rows: np.ndarray, bad: np.ndarray) -> None:
    kept, dropped = Tally.of(oracle, rows[~bad]), Tally.of(oracle, rows[bad])
    assert result.eta == dropped.n / kept.n
    np.testing.assert_array_equal(result.genuine, oracle.estimate(kept.counts(oracle), kept.n))
    np.testing.assert_array_equal(
        result.malicious, oracle.estimate(dropped.counts(oracle), dropped.n)
    )


def _abnormal_masks(
    oracle: FrequencyOracle, patterns: np.ndarray, least: int, rate: float
) -> list[int]:
    """Return the bit masks of abnormal sets, each report's pattern being held."""
    left, found = patterns, []
    for _ in range(6):
        bits = (left[:, None] >> np.arange(24) & 1).astype(float)
        share = bits.mean(axis=0)
        expected = np.outer(share, share)
        error = np.sqrt(expected * np.outer(1 - share, 1 - share) / len(left))
        excess = np.where(
            error > 0, (bits.T @ bits / len(left) - expected) / np.maximum(error, 1e-300), 0
        )
        np.fill_diagonal(excess, 0)
        if excess.max() < 6:
            break
        first, second = np.unravel_index(excess.argmax(), excess.shape)
        linked = np.flatnonzero((excess[first] >= 6) | (excess[second] >= 6))
        others = [i for i in linked if i not in (first, second)]
        others.sort(key=lambda i: -(excess[first, i] + excess[second, i]))
        group = np.sort([first, second, *others[:10]])
        if len(group) < least:
            break
        local = (left[:, None] >> group & 1) @ (1 << np.arange(group.size))
        counts = np.bincount(local, minlength=1 << group.size)
        every, taken = np.arange(counts.size), []
        for z in range(group.size, least - 1, -1):
            joint_support = oracle.laws.joint_support
            assert joint_support is not None
            enough = _supersets(counts) >= joint_support.threshold(len(patterns), z, rate)
            here = [int(mask) for mask in every[enough] if int(mask).bit_count() == z]
            for mask in here:
                counts[every & mask == mask] = 0
            taken += here
        if not taken:
            break
        found += [
            sum(1 << int(item) for i, item in enumerate(group) if mask >> i & 1) for mask in taken
        ]
        left = left[~np.any([local & mask == mask for mask in taken], axis=0)]
    return found


@UNARY
def test_diffstats_drops_what_it_does_with_all_sizes_in_memory(protocol: str) -> None:
    """As published: for each number of flagged sizes and each set of six items, the reports of both
    are counted.
    """
    oracle, rows = ORACLES[protocol], poisoned(protocol)
    bits = oracle.supports(rows)
    of = bits.sum(axis=1)
    law, observed = oracle.laws.size_law().probabilities(), np.bincount(of, minlength=D + 1)
    difference = np.where(observed > 0, np.abs(observed / len(rows) - law), 0)
    ranked = np.argsort(-difference, kind="stable")[:9]
    best, bad = (math.inf, len(rows)), np.zeros(len(rows), bool)
    for flagged in range(1, 10):
        sizes = ranked[:flagged]
        if law[sizes].sum() > 0.5:
            break
        suspects = np.isin(of, sizes)
        items = np.argsort(-bits[suspects].sum(axis=0), kind="stable")[:6]
        for number in range(1, 7):
            for chosen in itertools.combinations(items, number):
                removed = suspects & bits[:, chosen].any(axis=1)
                share = np.ones(D + 1)
                share[sizes] = _supports_none(D, sizes, number)
                score = _chi_squared(np.bincount(of[~removed], minlength=D + 1), share, law)
                found = (
                    max(chi_squared_normal(score[0], max(score[1] - 1, 1)) - 2.0, 0.0),
                    int(removed.sum()),
                )
                if found < best:
                    best, bad = found, removed
    result = recovered(protocol, "diffstats", rows, rows)
    assert (best[0] == 0) == (protocol == "oue"), (
        "the crafted reports of one of the two cannot be told by their sizes"
    )
    if best[0] == 0:
        _drops(result, oracle, rows, bad)
    else:
        assert result.eta == 0


@pytest.mark.parametrize("protocol", ORACLES)
def test_subsets_follow_one_stream_of_numbers(protocol: str) -> None:
    oracle, rows = ORACLES[protocol], poisoned(protocol)
    chosen = [rows[np.random.default_rng([7, s]).random(len(rows)) < 0.3] for s in range(5)]
    estimates = np.stack(
        [oracle.estimate(oracle.support_counts(part), len(part)) for part in chosen]
    )
    second = two_means(estimates)
    larger = ~second if second.sum() * 2 <= 5 else second
    result = recovered(
        protocol, "k-means", rows, rows, options={"subsets": 5, "rate": 0.3, "seed": 7}
    )
    np.testing.assert_array_equal(result.genuine, estimates[larger].mean(axis=0))


@UNARY
def test_em_takes_the_steps_that_it_does_in_double_precision(protocol: str) -> None:
    oracle, rows = ORACLES[protocol], poisoned(protocol)
    bits, lift = oracle.supports(rows).astype(float), np.expm1(oracle.epsilon)
    f = (
        0.9 * counts_likelihood(oracle, oracle.estimate(oracle.support_counts(rows), len(rows)))
        + 0.1 / D
    )
    for _ in range(6):
        weights = 1 / (1 + lift * (bits @ f))
        f = f * (weights.sum() + lift * (weights @ bits)) / len(rows)
        f /= f.sum()
    result = recovered(protocol, "em", rows, rows)
    np.testing.assert_allclose(result.recovered, f, rtol=1e-4, atol=1e-7)


def test_em_holds_no_more_than_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """2000 reports of 64 bits are held and one more is not."""
    monkeypatch.setattr("ldprecover.recovery.methods.likelihood._MAX_BITS", 2_000 * 64)
    rows = poisoned("oue")
    recovered("oue", "em", rows[:2_000], rows)
    with pytest.raises(
        ParameterError, match="em holds 60 bits a report: there are too many reports for it"
    ):
        recovered("oue", "em", rows[:2_001], rows)
