"""The filters: which reports they drop, and the suspects."""

import itertools
import tracemalloc
from functools import cache, partial

import numpy as np
import pytest
from tests.core.recovery.poisoned_round import Round, play

from ldprecover import (
    GRR,
    OLH,
    OUE,
    FrequencyOracle,
    ParameterError,
    frequency_oracle,
    project_simplex,
)
from ldprecover.crafting import crafter_of
from ldprecover.protocols import SS, SUE
from ldprecover.recovery import recover
from ldprecover.recovery.unmixing import NoisyEstimates, filter_reports
from ldprecover.recovery.unmixing.filters import set_search
from ldprecover.recovery.unmixing.filters.report_filters import unfit
from ldprecover.reports import ReportSource, source
from ldprecover_attacker import AA, APA, MGA, MGAA, MLA, RPA, Attack, Manip

D, N, M = 60, 40_000, 2_100  # beta = 0.05
ORACLES = {"oue": OUE(1.0, D), "olh": OLH(1.0, D, 4), "sue": SUE(1.0, D), "ss": SS(1.0, D, 16)}
TARGETS, OTHERS = (7, 19, 22, 31, 40, 48, 51, 55), (3, 9, 14, 29, 35, 44, 50, 58)
TWO = (MGA(TARGETS), MGA(OTHERS))


@cache
def attacked(protocol: str, *attacks: Attack) -> Round:
    """Return a round of N users and M malicious reports. Seeded."""
    return play(ORACLES[protocol], 1 / np.arange(1, D + 1), N, *attacks, m=M)


def filtered(round: Round) -> NoisyEstimates:
    return filter_reports(ReportSource(round.oracle, round.data))


every_protocol = pytest.mark.parametrize("protocol", ORACLES)


@every_protocol
def test_all_honest_reports_pass(protocol: str) -> None:
    """The result is the plain estimate. Of 256 rounds of other seeds no report was dropped."""
    round = attacked(protocol)
    result = filtered(round)
    assert (result.n, result.suspects, result.dropped, result.notes) == (N, {}, (), ())
    assert result.z == pytest.approx(round.estimates, abs=1e-9)
    # The mean of 60 squares of variance 2, 6.1 deviations of it off once in 1e9; a mean of
    # 3.3 is missed once in 100.
    assert abs((((result.z - round.truth) / result.sd) ** 2).mean() - 1) < 6.1 * (2 / D) ** 0.5


SHARED, SIZES = "shared items", "frequent sizes"


@pytest.mark.parametrize(
    ("protocol", "attacks", "screen", "suspects", "gain"),
    [
        *[(protocol, TWO, SHARED, TARGETS + OTHERS, 4) for protocol in ORACLES],
        *[(protocol, (MGAA(TARGETS),), SHARED, TARGETS, 1.5) for protocol in ("olh", "sue")],
        *[(protocol, (APA(TARGETS),), SHARED, TARGETS, 1.5) for protocol in ("oue", "ss")],
        *[(protocol, (MLA(),), SHARED, None, 1.5) for protocol in ("olh", "ss")],
        ("oue", (MGA(TARGETS, model="sampled"),), SIZES, None, 1.5),
        ("sue", (MGA(TARGETS, model="sampled"),), SIZES, None, 1.5),
        # All have one number of ones, which fewer honest reports have than many of the targets.
        ("oue", (MGAA(TARGETS, 4),), SIZES, TARGETS, 1.5),
        # Random bits have more ones; and padded reports have all one number of ones.
        ("oue", (RPA(),), SIZES, (), 0.95),
        ("oue", (Manip(),), SIZES, (), 0.95),
    ],
)
def test_drops_most_malicious_reports(
    protocol: str,
    attacks: tuple[Attack, ...],
    screen: str,
    suspects: tuple[int, ...] | None,
    gain: float,
) -> None:
    """The gain is that of projecting the estimates of the reports that pass."""
    round = attacked(protocol, *attacks)
    result = filtered(round)
    assert {dropped.screen for dropped in result.dropped} == {screen}
    number = sum(dropped.reports for dropped in result.dropped)
    assert 0.9 * M < number == len(round.data) - result.n
    if suspects is not None:
        assert {*result.suspects} == {*suspects}
    assert round.gain(project_simplex(result.z)) > gain


def test_set_that_only_dropped_reports_share_is_no_suspect() -> None:
    """Reports of one item lack the others; without them nothing is shared, and honest ones stay."""
    weights = np.append([0.49, 0.26], np.full(98, 0.25 / 98))
    round = play(OUE(1.0, 100), weights, 60_000, AA("peaked", model="sampled"), m=3_000)
    estimates = filtered(round)
    assert [each.screen for each in estimates.dropped] == ["frequent sizes"]
    assert (estimates.suspects, estimates.additions) == ({}, ())
    assert abs(estimates.z[0] - round.truth[0]) < 5 * estimates.sd[0]


def test_set_with_nearly_all_users_is_no_attackers() -> None:
    """All users hold one of eight items, and some reports support all of these."""
    oracle = ORACLES["oue"]
    bits = oracle.supports(play(oracle, np.arange(D) < 8, N).data).copy()
    bits[:6000, :8] = True
    result = filter_reports(ReportSource(oracle, np.packbits(bits, axis=1, bitorder="little")))
    assert not [dropped for dropped in result.dropped if dropped.screen == SHARED]
    assert not result.suspects
    (note,) = result.notes
    assert note.startswith("Many reports share item indices 0, 1, 2, 3, 4, 5, 6, 7, but then most")


@pytest.mark.parametrize(("attacks", "passes"), [((), 2), (TWO, 8)])
def test_reports_are_read_a_few_times(attacks: tuple[Attack, ...], passes: int) -> None:
    rows, numbers = attacked("olh", *attacks).data, set[int]()
    filter_reports(ReportSource(ORACLES["olh"], rows, progress=lambda i, _: numbers.add(i)))
    assert len(numbers) <= passes


@pytest.mark.statistical
def test_memory_of_the_filters_does_not_grow_with_reports(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """20 more blocks raise the largest memory by less than a byte for each of their reports."""
    oracle, rows = ORACLES["olh"], attacked("olh", *TWO).data[::21]
    monkeypatch.setattr(source, "_CELLS", len(rows) * D)
    monkeypatch.setattr(set_search, "_SAMPLED", 1 << 12)
    filter_reports(ReportSource(oracle, rows))  # fill caches first
    peaks = []
    for blocks in (20, 40):
        tracemalloc.start()
        assert filter_reports(ReportSource(oracle, partial(itertools.repeat, rows, blocks))).dropped
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < 20 * len(rows)


@pytest.mark.parametrize("oracle", [GRR(1.0, D), SS(1.0, D, 1)], ids=lambda o: o.protocol)
def test_unfilterable_reports_all_pass_with_a_note(oracle: FrequencyOracle) -> None:
    round = play(oracle, np.ones(D), 1000)
    result, *_ = round.unmixed()
    assert result.genuine == pytest.approx(round.estimates)
    assert f"No reports were filtered: {unfit(oracle)}." in result.notes


def test_least_share_of_a_fixed_size_is_not_above_the_truth() -> None:
    """The items that are no targets are found too, in the reports that pass without targets."""
    oracle, rng = frequency_oracle("ss", 2.0, 27), np.random.default_rng(1)
    targets = np.array([1, 4, 8, 11, 12, 21, 24, 25])
    genuine = oracle.perturb(rng.integers(27, size=40_000), rng)
    malicious = crafter_of(oracle).craft(np.tile(targets, (2_000, 1)), rng)
    estimates = filter_reports(ReportSource(oracle, np.concatenate([genuine, malicious])))
    assert 0 < estimates.malicious < 2_000


def test_error_without_reports() -> None:
    oracle = OUE(1.0, D)
    with pytest.raises(ParameterError, match="there are no reports to filter"):
        filter_reports(ReportSource(oracle, oracle.perturb([])))


@pytest.mark.parametrize("row", [0, 0b101])
def test_no_report_is_dropped_if_all_would_be(row: int) -> None:
    oracle = OUE(1.0, 32)
    result = recover(oracle, np.full((3000, 4), row, np.uint8))
    reason = "Nearly all reports have sizes that are too frequent"
    assert f"{reason}: these are the estimates, projected." in result.notes
    assert result.conclusions is not None
    assert result.conclusions.attack == "near_certain"


FEW = [(protocol, 8, (0, 1, 2)) for protocol in ("oue", "ss", "llh")]
PAIRS = [(protocol, 40, (0, 1)) for protocol in ("olh", "sue")]


@pytest.mark.parametrize(("protocol", "d", "targets"), [*FEW, *PAIRS])
def test_few_items_and_pairs_are_projected(protocol: str, d: int, targets: tuple[int, ...]) -> None:
    """The attack is certain, but whether popular items are framed, nothing tells."""
    round = play(frequency_oracle(protocol, 1.0, d), 0.9 ** np.arange(d), N, MGA(targets), m=M)
    result, conclusions, _ = round.unmixed()
    np.testing.assert_allclose(result.recovered, project_simplex(round.estimates), atol=1e-9)
    assert (conclusions.suspects, conclusions.dropped) == ((), ())
    assert conclusions.attack == "near_certain"


@every_protocol
@pytest.mark.parametrize("n", [1, 2, 10])
def test_filters_few_reports_too(protocol: str, n: int) -> None:
    result = filter_reports(ReportSource(ORACLES[protocol], attacked(protocol).data[:n]))
    assert np.isfinite(result.z).all()
    assert (result.sd > 0).all()
    assert result.n == n
