"""Screens: what of a round's reports is dropped, and what is found by it."""

import itertools
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import cache
from multiprocessing import get_context

import numpy as np
import pytest

from ldprecover import GRR, OLH, OUE, FrequencyOracle, ParameterError
from ldprecover.protocols import crafter_of
from ldprecover.protocols.hr import HR
from ldprecover.protocols.ss import SS
from ldprecover.protocols.sue import SUE
from ldprecover.recovery import ReportSource, project_simplex, reports
from ldprecover.recovery.reports import pair_counts
from ldprecover.recovery.unmixing.estimates import NoisyEstimates
from ldprecover.recovery.unmixing.filters import rules
from ldprecover.recovery.unmixing.filters.report_filters import (
    _numbers_as_text,
    filter_reports,
    unfit,
)
from ldprecover.recovery.unmixing.filters.rules import DroppedSet, ReportFilter, hits_by_item
from ldprecover_attacker import APA, MGA, MGAA, MLA, RPA, Attack, Manip

D, N, M = 60, 40_000, 2_100  # beta = 0.05
ORACLES = {"oue": OUE(1.0, D), "olh": OLH(1.0, D, 4), "sue": SUE(1.0, D)}
TARGETS = ((7, 19, 22, 31, 40, 48, 51, 55), (3, 9, 14, 29, 35, 44, 50, 58))
WEIGHTS = 1 / np.arange(1, D + 1) / (1 / np.arange(1, D + 1)).sum()


@cache
def honest(protocol: str) -> tuple[np.ndarray, np.ndarray]:
    """Return what N users hold, and their reports. Seeded."""
    rng = np.random.default_rng(12)
    held = rng.choice(D, N, p=WEIGHTS)
    return np.bincount(held, minlength=D) / N, ORACLES[protocol].perturb(held, rng)


def attacked(protocol: str, *attacks: Attack) -> np.ndarray:
    """Return these reports, and M of the attacks together, shuffled. Seeded."""
    oracle, rng = ORACLES[protocol], np.random.default_rng(13)
    made = [attack.reports(oracle, M // len(attacks), rng) for attack in attacks]
    rows = np.concatenate([honest(protocol)[1], *made])
    rng.shuffle(rows)
    return rows


def gain(protocol: str, rows: np.ndarray, found: NoisyEstimates) -> float:
    """Return how many times the squared error of Norm-Sub falls when it gets what the screens
    give.
    """
    oracle, (truth, _) = ORACLES[protocol], honest(protocol)
    plain = oracle.estimate(oracle.support_counts(rows), len(rows))
    before, after = (((project_simplex(z) - truth) ** 2).mean() for z in (plain, found.z))
    return float(before / after)


def dropped(found: NoisyEstimates) -> dict[str, int]:
    """Return the number of reports that each screen took."""
    return {
        name: sum(d.reports for d in group)
        for name, group in itertools.groupby(found.dropped, lambda d: d.screen)
    }


every_protocol = pytest.mark.parametrize("protocol", ORACLES)


@every_protocol
def test_honest_reports_are_all_kept(protocol: str) -> None:
    """Of 256 rounds of other seeds and shapes none was screened; what comes out is the plain
    estimate.
    """
    oracle, (truth, rows) = ORACLES[protocol], honest(protocol)
    found = filter_reports(ReportSource(oracle, rows))
    assert (found.n, found.suspects, found.dropped, found.notes) == (N, (), (), ())
    assert found.z == pytest.approx(oracle.estimate(oracle.support_counts(rows), N), abs=1e-9)
    # The mean of 60 squares of variance 2, 6.1 deviations of it off once in 1e9.
    assert abs((((found.z - truth) / found.sd) ** 2).mean() - 1) < 6.1 * (2 / D) ** 0.5


@every_protocol
@pytest.mark.parametrize("targets", [TARGETS[:1], TARGETS])
def test_attackers_who_raise_sets_of_items_are_each_found(
    protocol: str, targets: tuple[tuple[int, ...], ...]
) -> None:
    rows = attacked(protocol, *map(MGA, targets))
    found = filter_reports(ReportSource(ORACLES[protocol], rows))
    assert found.suspects == tuple(sorted(itertools.chain(*targets)))
    assert [d.screen for d in found.dropped] == ["shared items"] * len(targets)
    assert 0.9 * M < dropped(found)["shared items"] < 1.6 * M
    assert found.n == len(rows) - dropped(found)["shared items"]
    assert gain(protocol, rows, found) > 4


@every_protocol
@pytest.mark.parametrize(
    "attack", [MGAA(TARGETS[0]), APA(TARGETS[0])], ids=lambda attack: attack.name
)
def test_hidden_attackers_are_found_by_shared_items(protocol: str, attack: Attack) -> None:
    rows = attacked(protocol, attack)
    found = filter_reports(ReportSource(ORACLES[protocol], rows))
    assert set(found.suspects) == set(TARGETS[0])
    assert gain(protocol, rows, found) > 1.5


@every_protocol
def test_one_report_sent_by_all_is_found(protocol: str) -> None:
    oracle, attack = ORACLES[protocol], MLA()
    rows = attacked(protocol, attack)
    found = filter_reports(ReportSource(oracle, rows))
    rest = filter_reports(ReportSource(oracle, honest(protocol)[1]))
    assert N - 100 <= found.n <= N
    assert found.z == pytest.approx(rest.z, abs=5 * rest.sd.max())


@pytest.mark.parametrize("protocol", ["oue", "sue"])
def test_reports_of_one_item_are_dropped_by_their_size(protocol: str) -> None:
    rows = attacked(protocol, MGA(TARGETS[0], model="sampled"))
    found = filter_reports(ReportSource(ORACLES[protocol], rows))
    assert dropped(found) == {"impossible sizes": M}
    assert (
        found.dropped[0].what
        == "reports whose number of supported items is 1, which honest ones hardly ever do"
    )
    assert found.z == pytest.approx(
        filter_reports(ReportSource(ORACLES[protocol], honest(protocol)[1])).z, abs=1e-6
    )


@pytest.mark.parametrize("attack", [RPA(), Manip()], ids=lambda attack: attack.name)
def test_reports_of_too_frequent_sizes_are_dropped(attack: Attack) -> None:
    """Random bits have more ones; and padded reports have all one number of ones."""
    rows = attacked("oue", attack)
    found = filter_reports(ReportSource(ORACLES["oue"], rows))
    assert not found.suspects
    assert {"frequent sizes"} <= set(dropped(found)) <= {"frequent sizes", "impossible sizes"}
    assert found.n + sum(dropped(found).values()) == len(rows)


@every_protocol
def test_a_set_that_most_users_hold_is_kept(protocol: str) -> None:
    """Their reports share it as an attacker's would: all but 5 % of the users hold one of eight
    items.
    """
    oracle, rng = ORACLES[protocol], np.random.default_rng(14)
    held = np.where(rng.random(N) < 0.95, rng.integers(8, size=N), rng.integers(8, D, size=N))
    found = filter_reports(ReportSource(oracle, oracle.perturb(held, rng)))
    assert (found.n, found.suspects, found.dropped) == (N, (), ())


def test_a_set_that_would_have_nearly_all_mass_is_no_attackers() -> None:
    """All users hold one of eight items, and some reports support all of these."""
    oracle, rng = ORACLES["oue"], np.random.default_rng(15)
    bits = oracle.supports(oracle.perturb(rng.choice(8, N), rng)).copy()
    bits[:6000, :8] = True
    found = filter_reports(ReportSource(oracle, np.packbits(bits, axis=1, bitorder="little")))
    assert "shared items" not in dropped(found)
    assert not found.suspects
    (note,) = found.notes
    assert note.startswith(
        "Many reports share item indices 0, 1, 2, 3, 4, 5, 6, 7, but then most of the users would"
    )


@pytest.mark.parametrize("protocol", ["oue", "olh"])
def test_filters_do_not_depend_on_the_arrays(
    protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the bit: any arrays, threads or processes, and blocks of any size."""
    oracle, rows = ORACLES[protocol], attacked(protocol, *map(MGA, TARGETS))
    whole = filter_reports(ReportSource(oracle, rows))

    def same(source: ReportSource) -> bool:
        found = filter_reports(source)
        numbers = np.array_equal(found.z, whole.z) and np.array_equal(found.sd, whole.sd)
        return numbers and (found.n, found.suspects, found.dropped) == (
            whole.n,
            whole.suspects,
            whole.dropped,
        )

    assert same(ReportSource(oracle, lambda: iter(np.array_split(rows, 37))))
    monkeypatch.setattr(reports, "_CELLS", 5_000 * D)
    assert same(ReportSource(oracle, rows))
    with ThreadPoolExecutor(3) as threads:
        assert same(ReportSource(oracle, rows, executor=threads))
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        assert same(ReportSource(oracle, rows, executor=processes))


@pytest.mark.parametrize(
    ("rows", "passes"),
    [(lambda: honest("olh")[1], 5), (lambda: attacked("olh", *map(MGA, TARGETS)), 11)],
)
def test_reports_are_read_a_few_times(rows: Callable[[], np.ndarray], passes: int) -> None:
    seen: set[int] = set()
    filter_reports(
        ReportSource(ORACLES["olh"], rows(), progress=lambda number, _: seen.add(number))
    )
    assert len(seen) <= passes


def test_held_reports_save_hashing_and_change_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To the bit, also where they are too many to hold. Two passes hash reports for all items, and
    no more.
    """
    oracle, rng = OLH(1.0, D, 4), np.random.default_rng(14)
    small = np.repeat(crafter_of(oracle).report_of_size(0, rng, search=20_000), 200)
    rows = np.concatenate([small[:100], attacked("olh", *map(MGA, TARGETS)), small[100:]])
    monkeypatch.setattr(reports, "_CELLS", 20_000 * D)
    hashed: list[int] = []

    def counted(self: OLH, given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        hashed.append(len(given))
        return plain(self, given)

    plain = OLH.summarise_with_sizes
    monkeypatch.setattr(OLH, "summarise_with_sizes", counted)
    found = filter_reports(ReportSource(oracle, rows))
    assert dropped(found) == {
        "impossible sizes": 200,
        "shared items": dropped(found)["shared items"],
    }
    assert sum(hashed) == 2 * len(rows)
    monkeypatch.setattr(rules, "_HELD", 1_000)
    other = filter_reports(ReportSource(oracle, rows))
    assert sum(hashed) > 6 * len(rows)
    assert (other.z.tobytes(), other.sd.tobytes(), other.dropped) == (
        found.z.tobytes(),
        found.sd.tobytes(),
        found.dropped,
    )


@every_protocol
def test_memory_of_the_filters_does_not_grow_with_reports(
    protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The most memory allocated at once for 160 blocks and for 80 differs by less than a byte for
    each report more.
    """
    oracle, rows = ORACLES[protocol], attacked(protocol, MGA(TARGETS[0]))[:1000]
    monkeypatch.setattr(reports, "_CELLS", 1000 * D)

    def peak(blocks: int) -> int:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        found = filter_reports(ReportSource(oracle, lambda: itertools.repeat(rows, blocks)))
        assert found.dropped
        return tracemalloc.get_traced_memory()[1] - before

    filter_reports(ReportSource(oracle, rows))  # what is made once is not counted
    tracemalloc.start()
    try:
        assert peak(160) - peak(80) < 80 * 1000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "oracle", [GRR(1.0, D), HR(1.0, D), SS(1.0, D, 16), OUE(1.0, 15)], ids=lambda o: o.protocol
)
def test_unfilterable_reports_all_pass_with_a_note(
    oracle: FrequencyOracle,
) -> None:
    rng = np.random.default_rng(16)
    rows = oracle.perturb(rng.integers(oracle.domain_size, size=1000), rng)
    found = filter_reports(ReportSource(oracle, rows))
    assert found.n == 1000
    assert found.z == pytest.approx(oracle.estimate(oracle.support_counts(rows), 1000))
    assert found.notes == (f"Reports were not filtered: {unfit(oracle)}.",)


@pytest.mark.parametrize("oracle", [OUE(1.0, D), GRR(1.0, D)], ids=lambda o: o.protocol)
def test_no_reports_are_refused(oracle: FrequencyOracle) -> None:
    with pytest.raises(ParameterError, match="there are no reports to filter"):
        filter_reports(ReportSource(oracle, oracle.perturb([])))


def test_reports_that_are_all_impossible_are_refused() -> None:
    oracle = OUE(1.0, D)
    with pytest.raises(ParameterError, match="all reports would be dropped"):
        filter_reports(ReportSource(oracle, np.zeros((1000, oracle.row_bytes), np.uint8)))


@every_protocol
@pytest.mark.parametrize("n", [1, 2, 10])
def test_few_reports_are_screened_too(protocol: str, n: int) -> None:
    found = filter_reports(ReportSource(ORACLES[protocol], honest(protocol)[1][:n]))
    assert np.isfinite(found.z).all()
    assert (found.sd > 0).all()
    assert found.n == n


def test_hits_are_counted_by_set_and_item() -> None:
    oracle, rows = ORACLES["olh"], honest("olh")[1][:3000]
    items = np.array([3, 5, 8, 13, 21])
    rule = ReportFilter(sets=(DroppedSet(np.array([0, 1]), np.array([False, False, True])),))
    sets = np.array([[True, True, False, True, False], [False, False, True, True, True]])
    bits = oracle.supports(rows)
    bits = bits[~(bits[:, 0] & bits[:, 1])][:, items]
    hits = hits_by_item(oracle, rows, report_filter=rule, items=items, sets=sets)
    assert hits.shape == (2, 25, 6)
    for of_set, members in zip(hits, sets, strict=True):
        numbers = bits[:, members].sum(axis=1)
        for k in range(25):
            assert of_set[k].tolist() == [*bits[numbers == k].sum(axis=0), (numbers == k).sum()]


def test_pairs_are_counted_with_all_reports_last() -> None:
    oracle, rows = ORACLES["oue"], honest("oue")[1][:3000]
    items = np.array([4, 2, 59])
    bits = np.column_stack([oracle.supports(rows)[:, items], np.ones(3000, np.bool_)]).astype(
        np.int64
    )
    assert np.array_equal(pair_counts(oracle, rows, items), bits.T @ bits)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [([3], "3"), ([0, 1, 2], "0 to 2"), ([1, 3, 5, 6, 7], "1, 3 or 5 to 7"), ([0, 9], "0 or 9")],
)
def test_numbers_are_told_as_ranges(numbers: list[int], words: str) -> None:
    chosen = np.zeros(10, np.bool_)
    chosen[numbers] = True
    assert _numbers_as_text(chosen) == words
