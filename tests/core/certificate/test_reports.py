"""Certificates from reports: exact laws of cells, a blind choice of scores, and the results."""

import builtins
import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ldprecover import ParameterError, Tally, frequency_oracle
from ldprecover.certificate import MoreThan, certify
from ldprecover.certificate.evidence import RoundEvidence
from ldprecover.certificate.partitions import numbers_of_cells, report_cells, set_cells
from ldprecover.certificate.reports import chooses
from ldprecover.protocols import GRR, HR, LLH, OLH, OUE, SS, SUE, FrequencyOracle
from ldprecover.reports.source import ReportSource

D = 8
TARGETS = (3, 6)
ORACLES: dict[str, FrequencyOracle] = {
    "grr": GRR(1.5, D),
    "oue": OUE(1.5, D),
    "sue": SUE(1.5, D),
    "olh": OLH(1.5, D, 5),
    "ss": SS(1.5, D, 3),
    "hr": HR(1.5, D),
    "llh": LLH(1.5, D, 5),
}


def played(oracle: FrequencyOracle, m: int = 600, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Return the honest users' frequencies, and all reports, m malicious ones last.

    These are honest reports of a target that support the most targets.
    """
    users = 100 * np.arange(D, 0, -1)
    rng = np.random.default_rng(seed)
    honest = oracle.perturb(np.repeat(np.arange(D), users), rng)
    pool = oracle.perturb(np.full(10_000, TARGETS[0]), rng)
    hits = np.count_nonzero(oracle.supports(pool, np.array(TARGETS)), axis=1)
    return users / users.sum(), np.concatenate([honest, pool[np.argsort(-hits, kind="stable")[:m]]])


def certified(oracle: FrequencyOracle, reports: Any, share: float = 0.12, seed: int = 5) -> Any:
    return certify(oracle, reports, share, questions=[TARGETS], seed=seed)


@pytest.mark.parametrize(
    ("name", "events", "least", "low", "high", "tolerance"),
    [
        ("grr", 21, 0.0000, 0.1251, 0.8787, 0.1595),
        ("oue", 23, 0.0957, 0.1737, 0.3456, 0.1762),
        ("sue", 20, 0.0655, 0.0906, 0.4221, 0.1639),
        ("olh", 21, 0.0888, 0.1604, 0.3729, 0.1623),
        ("ss", 20, 0.0957, 0.1269, 0.3218, 0.1790),
        ("hr", 20, 0.0000, 0.0549, 0.9100, 0.1516),
        ("llh", 22, 0.0812, 0.1518, 0.4285, 0.1693),
    ],
)
def test_certificate_of_a_round(
    name: str, events: int, least: float, low: float, high: float, tolerance: float
) -> None:
    """One round of each protocol, to four digits: a change of what is proven shows."""
    oracle = ORACLES[name]
    truth, reports = played(oracle)
    certificate = certified(oracle, reports)
    evidence, tally, total = (
        certificate.evidence,
        Tally.of(oracle, reports),
        certificate.total(TARGETS),
    )
    assert evidence.events == events == 2 * D + len(evidence.scored.losses) + 2
    assert total == pytest.approx((low, high), abs=1e-4)
    assert total[0] <= truth[list(TARGETS)].sum() <= total[1]
    region = evidence.region
    assert least == 0 or region(least - 1e-4) is None
    assert region(least + 1e-4) is not None
    assert MoreThan(TARGETS).holds(region(tolerance - 1e-4))
    assert not MoreThan(TARGETS).holds(region(tolerance + 1e-4))
    counted: Any = RoundEvidence(
        oracle, tally.counts(oracle).astype(float), tally.n, 0.05 / 5
    ).region(0.12)
    np.testing.assert_array_equal(certificate.lower, counted.lower)


def test_tolerance_and_least_share_are_of_the_reports() -> None:
    certificate = certified(ORACLES["oue"], played(ORACLES["oue"])[1])
    assert certificate.tolerance(MoreThan(TARGETS)) == pytest.approx(0.1762, abs=1e-4)
    assert certificate.least_malicious_share == pytest.approx(0.0957, abs=1e-4)


def test_less_is_proven_at_more_share_and_confidence() -> None:
    evidence = certified(ORACLES["oue"], played(ORACLES["oue"])[1]).evidence
    weights = np.isin(np.arange(D), TARGETS).astype(float)
    regions = [evidence.region(share) for share in (0.1, 0.11, 0.12, 0.2, 0.4)]
    regions += [replace(evidence, error=error).region(0.4) for error in (0.01, 0.001)]
    lows, highs = np.array([region.limits(weights) for region in regions]).T
    assert (np.diff(lows) <= 1e-7).all()
    assert (np.diff(highs) >= -1e-7).all()


@pytest.mark.statistical
@pytest.mark.parametrize("name", ORACLES)
def test_truth_is_inside(name: str) -> None:
    """Ten rounds at a confidence of 0.5: none fails, though half of them may.

    Misses limits that fail in a tenth of all rounds with probability 0.9^10 = 0.35, and what the
    exact tests of their error see.
    """
    oracle = ORACLES[name]
    for trial in range(10):
        m = 80 * trial
        truth, reports = played(oracle, m, trial)
        if trial % 2:
            reports = reports[np.lexsort(reports.T)] if reports.ndim > 1 else np.sort(reports)
        share = m / len(reports)
        certificate = certify(oracle, reports, share, 0.5, questions=[TARGETS], seed=trial)
        assert certificate.is_possible
        assert certificate.least_malicious_share <= share
        assert ((certificate.lower <= truth) & (truth <= certificate.upper)).all()
        for items in (TARGETS, (0,), range(4), range(5, D)):
            low, high = certificate.total(items)
            assert low <= truth[list(items)].sum() <= high


def all_reports(oracle: FrequencyOracle) -> np.ndarray:
    d = oracle.domain_size
    if not oracle.wire.dtype.shape:
        return np.arange(oracle.wire.columns[0].limit).astype(oracle.wire.dtype)
    bits = np.array(list(itertools.product([0, 1], repeat=d)), np.uint8)
    if oracle.fixed_size is not None:
        bits = bits[bits.sum(axis=1) == oracle.fixed_size]
    return np.packbits(bits, axis=1, bitorder="little")


@pytest.mark.parametrize("name", ["grr", "oue", "sue", "ss", "hr", "llh"])
def test_cells_have_the_laws_of_all_reports(name: str) -> None:
    d, sets = 6, [np.array([1, 4]), np.array([0]), np.arange(6)]
    oracle = frequency_oracle(name, 1.5, d)
    reports, likelihood = all_reports(oracle), oracle.laws.log_likelihood
    assert likelihood is not None
    laws = np.exp([likelihood(reports, each) for each in np.eye(d)])
    laws /= laws.sum(axis=1, keepdims=True)
    partitions: Any = report_cells(oracle, sets) or [set_cells(oracle, each) for each in sets]
    assert len(partitions) == len(sets) + (name in ("grr", "hr", "llh"))
    frequencies = np.arange(d) / 15
    for cells, numbers in zip(
        partitions, numbers_of_cells(partitions, oracle, reports), strict=True
    ):
        expected = np.array([np.bincount(numbers, law, cells.size) for law in laws])
        values = np.arange(cells.size) ** 2.0
        np.testing.assert_allclose(
            cells.means(values.reshape(cells.laws[0].shape)), expected @ values
        )
        np.testing.assert_allclose(cells.law(frequencies).ravel(), frequencies @ expected)


def test_cells_of_many_items_are_intervals_of_numbers() -> None:
    d, oracle = 500, OUE(1.5, 500)
    cells: Any = set_cells(oracle, np.array([3, 9]))
    others = np.convolve(
        stats.binom.pmf(np.arange(d - 2), d - 3, oracle.q), [1 - oracle.p, oracle.p]
    )
    law = np.outer(stats.binom.pmf(range(3), 2, oracle.q), np.bincount(cells.bins[1], others))
    np.testing.assert_allclose(cells.laws[1], law, atol=1e-12)
    lengths = np.bincount(cells.bins[1])[1:-1]
    assert cells.laws.shape == (2, 3, 33)
    assert (np.diff(cells.bins[1]) >= 0).all()
    assert lengths.max() - lengths.min() == 1
    assert 1e-6 < law[:, -1].sum() < 1e-4
    few: Any = set_cells(oracle, np.arange(d - 32))
    assert few.laws.shape == (2, 33, 33)


@pytest.mark.parametrize("oracle", [HR(1, 9), GRR(1, 9), LLH(1, 9, 3)])
def test_sets_have_no_cells_where_items_are_not_alike(oracle: FrequencyOracle) -> None:
    assert set_cells(oracle, np.array([1])) is None
    assert report_cells(OUE(1, 9), [np.array([1])]) == []


def test_too_many_laws_are_not_computed() -> None:
    assert report_cells(GRR(1, 4_097), []) == []
    assert len(report_cells(GRR(1, 50), [])) == 1
    assert set_cells(OUE(1, 8_192), np.arange(4_096)) is None


def test_scores_do_not_depend_on_what_is_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    """They may depend on the number of these reports alone."""
    oracle, (_, reports) = ORACLES["sue"], played(ORACLES["sue"])
    chosen = chooses(1, len(reports))
    monkeypatch.setattr("ldprecover.certificate.reports._choosing", lambda source, seed: chosen)
    others = reports.copy()
    others[~chosen] = oracle.perturb(np.zeros((~chosen).sum(), int), np.random.default_rng(1))
    first, other = (certified(oracle, each, 0.3).evidence.scored for each in (reports, others))
    np.testing.assert_array_equal(first.losses, other.losses)
    assert first.n == other.n == (~chosen).sum()
    assert (first.sums != other.sums).all()


def test_seed_determines_certificate() -> None:
    oracle, (_, reports) = ORACLES["oue"], played(ORACLES["oue"])
    first, again, other = (certified(oracle, reports, seed=seed) for seed in (5, 5, 6))
    assert first.total(TARGETS) == again.total(TARGETS) != other.total(TARGETS)
    unseeded: Any = certify(oracle, reports, 0.12)
    assert unseeded.seed.bit_length() > 64
    assert first.seed == 5
    assert first.assumption.endswith("the seed drew those that chose what is tested.")


@pytest.mark.parametrize("name", ["grr", "oue", "olh", "llh"])
def test_order_and_chunks_of_reports_change_no_bit(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    oracle, (_, reports) = ORACLES[name], played(ORACLES[name])
    reports = np.concatenate([reports, np.repeat(reports[:1], 300, axis=0)])  # copies
    shuffled = reports[np.random.default_rng(4).permutation(len(reports))]
    first = certified(oracle, reports, 0.2)
    monkeypatch.setattr("ldprecover.reports.source._CELLS", 1_000 * D)
    other = certified(oracle, ReportSource(oracle, lambda: np.array_split(shuffled, 7)), 0.2)
    assert first.evidence.scored.sums.size
    np.testing.assert_array_equal(first.evidence.scored.sums, other.evidence.scored.sums)
    assert first.total(TARGETS) == other.total(TARGETS)


def test_a_quarter_chooses() -> None:
    """Of any number, each for itself, also of equal reports: as these seeds draw.

    The numbers are within 2.6 of their standard deviations of a quarter.
    """
    whole = chooses(2**127 + 3, 100_000)
    assert whole.sum() == 25_354
    np.testing.assert_array_equal(chooses(2**127 + 3, 77_077), whole[:77_077])
    for name, scored in (("oue", 7_537), ("grr", 7_594)):
        report = ORACLES[name].perturb([0], np.random.default_rng(3))
        evidence = certified(ORACLES[name], np.repeat(report, 10_000, axis=0), 0.9).evidence
        assert evidence.scored.n == scored


def test_a_round_without_reports_raises() -> None:
    oracle = ORACLES["oue"]
    with pytest.raises(ParameterError, match="at least one report"):
        certify(oracle, oracle.perturb([]), 0.1)


def test_missing_scipy_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def without_scipy(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("scipy"):
            raise ImportError(name)
        return imported(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_scipy)
    with pytest.raises(ImportError, match=r"ldprecover\[certify\]"):
        certify(ORACLES["oue"], played(ORACLES["oue"])[1], 0.1)
