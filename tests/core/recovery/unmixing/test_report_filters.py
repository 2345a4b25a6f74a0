"""The filters: which reports they drop, and the suspects."""

import itertools
import tracemalloc
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from tests.core.recovery.poisoned_round import estimates_of

from ldprecover import GRR, OLH, OUE, FrequencyOracle, ParameterError
from ldprecover.protocols.ss import SS
from ldprecover.protocols.sue import SUE
from ldprecover.recovery import ReportSource, project_simplex, recover, reports
from ldprecover.recovery.unmixing.estimates import NoisyEstimates
from ldprecover.recovery.unmixing.filters.report_filters import (
    _numbers_as_text,
    filter_reports,
    unfit,
)
from ldprecover_attacker import APA, MGA, MGAA, MLA, RPA, Attack, Manip

D, N, M = 60, 40_000, 2_100  # beta = 0.05
ORACLES = {
    "oue": OUE(1.0, D),
    "olh": OLH(1.0, D, 4),
    "sue": SUE(1.0, D),
    "ss": SS(1.0, D, 16),
}
TARGETS = ((7, 19, 22, 31, 40, 48, 51, 55), (3, 9, 14, 29, 35, 44, 50, 58))
WEIGHTS = 1 / np.arange(1, D + 1) / (1 / np.arange(1, D + 1)).sum()


@cache
def honest(protocol: str) -> tuple[np.ndarray, np.ndarray]:
    """Return what N users hold, and their reports. Seeded."""
    rng = np.random.default_rng(12)
    items = rng.choice(D, N, p=WEIGHTS)
    return np.bincount(items, minlength=D) / N, ORACLES[protocol].perturb(items, rng)


def attacked(protocol: str, *attacks: Attack) -> np.ndarray:
    """Return these reports, and M of the attacks together, shuffled. Seeded."""
    oracle, rng = ORACLES[protocol], np.random.default_rng(13)
    crafted = [attack.reports(oracle, M // len(attacks), rng) for attack in attacks]
    rows = np.concatenate([honest(protocol)[1], *crafted])
    rng.shuffle(rows)
    return rows


def gain(protocol: str, rows: np.ndarray, result: NoisyEstimates) -> float:
    """Return the factor by which filtering lowers the squared error of Norm-Sub."""
    oracle, (truth, _) = ORACLES[protocol], honest(protocol)
    plain = estimates_of(oracle, rows)
    before, after = (((project_simplex(z) - truth) ** 2).mean() for z in (plain, result.z))
    return float(before / after)


def dropped(result: NoisyEstimates) -> dict[str, int]:
    """Return the number of reports that each filter dropped."""
    return {
        name: sum(d.reports for d in group)
        for name, group in itertools.groupby(result.dropped, lambda d: d.screen)
    }


every_protocol = pytest.mark.parametrize("protocol", ORACLES)


@every_protocol
def test_all_honest_reports_pass(protocol: str) -> None:
    """The result is the plain estimate. Of 256 rounds of other seeds no report was dropped."""
    oracle, (truth, rows) = ORACLES[protocol], honest(protocol)
    result = filter_reports(ReportSource(oracle, rows))
    assert (result.n, result.suspects, result.dropped, result.notes) == (N, {}, (), ())
    assert result.z == pytest.approx(estimates_of(oracle, rows), abs=1e-9)
    # The mean of 60 squares of variance 2, 6.1 deviations of it off once in 1e9.
    assert abs((((result.z - truth) / result.sd) ** 2).mean() - 1) < 6.1 * (2 / D) ** 0.5


@every_protocol
def test_finds_each_attacker_who_raises_a_set(protocol: str) -> None:
    rows = attacked(protocol, *map(MGA, TARGETS))
    result = filter_reports(ReportSource(ORACLES[protocol], rows))
    assert tuple(result.suspects) == tuple(sorted(itertools.chain(*TARGETS)))
    assert [d.screen for d in result.dropped] == ["shared items"] * 2
    assert 0.9 * M < dropped(result)["shared items"] < 1.6 * M
    assert result.n == len(rows) - dropped(result)["shared items"]
    assert gain(protocol, rows, result) > 4


@every_protocol
@pytest.mark.parametrize(
    "attack", [MGAA(TARGETS[0]), APA(TARGETS[0])], ids=lambda attack: attack.name
)
def test_hidden_attackers_are_found_by_shared_items(protocol: str, attack: Attack) -> None:
    rows = attacked(protocol, attack)
    result = filter_reports(ReportSource(ORACLES[protocol], rows))
    assert set(result.suspects) == set(TARGETS[0])
    assert gain(protocol, rows, result) > 1.5


@every_protocol
def test_one_report_sent_by_all_is_found(protocol: str) -> None:
    oracle, attack = ORACLES[protocol], MLA()
    rows = attacked(protocol, attack)
    result = filter_reports(ReportSource(oracle, rows))
    rest = filter_reports(ReportSource(oracle, honest(protocol)[1]))
    assert N - 100 <= result.n <= N
    assert result.z == pytest.approx(rest.z, abs=5 * rest.sd.max())


@pytest.mark.parametrize("protocol", ["oue", "sue"])
def test_reports_of_one_item_are_dropped_by_their_size(protocol: str) -> None:
    rows = attacked(protocol, MGA(TARGETS[0], model="sampled"))
    result = filter_reports(ReportSource(ORACLES[protocol], rows))
    assert dropped(result) == {"frequent sizes": M}
    assert (
        result.dropped[0].what == "reports whose number of supported items is 1, which too many do"
    )
    assert result.z == pytest.approx(
        filter_reports(ReportSource(ORACLES[protocol], honest(protocol)[1])).z, abs=1e-6
    )


@pytest.mark.parametrize("attack", [RPA(), Manip()], ids=lambda attack: attack.name)
def test_reports_of_too_frequent_sizes_are_dropped(attack: Attack) -> None:
    """Random bits have more ones; and padded reports have all one number of ones."""
    rows = attacked("oue", attack)
    result = filter_reports(ReportSource(ORACLES["oue"], rows))
    assert not result.suspects
    assert set(dropped(result)) == {"frequent sizes"}
    assert result.n + sum(dropped(result).values()) == len(rows)


def test_set_with_nearly_all_users_is_no_attackers() -> None:
    """All users hold one of eight items, and some reports support all of these."""
    oracle, rng = ORACLES["oue"], np.random.default_rng(15)
    bits = oracle.supports(oracle.perturb(rng.choice(8, N), rng)).copy()
    bits[:6000, :8] = True
    result = filter_reports(ReportSource(oracle, np.packbits(bits, axis=1, bitorder="little")))
    assert "shared items" not in dropped(result)
    assert not result.suspects
    (note,) = result.notes
    assert note.startswith(
        "Many reports share item indices 0, 1, 2, 3, 4, 5, 6, 7, but then most of the users would"
    )


@pytest.mark.parametrize(
    ("rows", "passes"),
    [(lambda: honest("olh")[1], 2), (lambda: attacked("olh", *map(MGA, TARGETS)), 8)],
)
def test_reports_are_read_a_few_times(rows: Callable[[], np.ndarray], passes: int) -> None:
    passes_seen: set[int] = set()
    filter_reports(
        ReportSource(ORACLES["olh"], rows(), progress=lambda number, _: passes_seen.add(number))
    )
    assert len(passes_seen) <= passes


def test_memory_of_the_filters_does_not_grow_with_reports(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """20 more blocks raise the largest memory by less than a byte for each of their reports."""
    oracle, rows = ORACLES["olh"], attacked("olh", MGA(TARGETS[0]))[:1000]
    monkeypatch.setattr(reports, "_CELLS", 1000 * D)

    def peak(blocks: int) -> int:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        result = filter_reports(ReportSource(oracle, lambda: itertools.repeat(rows, blocks)))
        assert result.dropped
        return tracemalloc.get_traced_memory()[1] - before

    filter_reports(ReportSource(oracle, rows))  # fill caches first
    tracemalloc.start()
    try:
        assert peak(40) - peak(20) < 20 * 1000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("oracle", [GRR(1.0, D), SS(1.0, D, 1)], ids=lambda o: o.protocol)
def test_unfilterable_reports_all_pass_with_a_note(oracle: FrequencyOracle) -> None:
    rng = np.random.default_rng(16)
    rows = oracle.perturb(rng.integers(oracle.domain_size, size=1000), rng)
    result = recover(oracle, rows, "unmix")
    assert result.genuine == pytest.approx(estimates_of(oracle, rows))
    assert f"No reports were filtered: {unfit(oracle)}." in result.notes


def test_error_without_reports() -> None:
    oracle = OUE(1.0, D)
    with pytest.raises(ParameterError, match="there are no reports to filter"):
        filter_reports(ReportSource(oracle, oracle.perturb([])))


@pytest.mark.parametrize("row", [0, 0b101])
def test_no_report_is_dropped_if_all_would_be(row: int) -> None:
    oracle = OUE(1.0, 8)
    result = recover(oracle, np.full((3000, 1), row, np.uint8))
    assert "No report was filtered out: all would be." in result.notes
    assert result.conclusions is not None
    assert result.conclusions.attack == "near_certain"


@every_protocol
@pytest.mark.parametrize("n", [1, 2, 10])
def test_filters_few_reports_too(protocol: str, n: int) -> None:
    result = filter_reports(ReportSource(ORACLES[protocol], honest(protocol)[1][:n]))
    assert np.isfinite(result.z).all()
    assert (result.sd > 0).all()
    assert result.n == n


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([3], "3"), ([0, 1, 2], "0 to 2"), ([1, 3, 5, 6, 7], "1, 3 or 5 to 7"), ([0, 9], "0 or 9")],
)
def test_numbers_are_written_as_ranges(numbers: list[int], text: str) -> None:
    chosen = np.zeros(10, np.bool_)
    chosen[numbers] = True
    assert _numbers_as_text(chosen) == text
