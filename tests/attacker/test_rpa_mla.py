"""RPA sends anything that can be sent; MLA has everybody send one report."""

import numpy as np
import pytest
from tests.randomness import rng

from ldprecover import GRR, OLH, OUE, FrequencyOracle, ParameterError
from ldprecover_attacker import MLA, RPA

ORACLES = [GRR(0.5, 102), OUE(0.5, 102), OLH(0.5, 102, 3)]
each_oracle = pytest.mark.parametrize("oracle", ORACLES, ids=lambda oracle: oracle.protocol)


def test_oue_reports_at_random_are_fair_coins() -> None:
    """Each bit in half of 20,000 reports, each pair together in a quarter, to 7 sd (2e-8 in
    all).
    """
    m = 20_000
    bits = OUE(0.5, 45).supports(RPA().reports(OUE(0.5, 45), m, rng())).astype(np.float64)
    pairs = bits.T @ bits
    assert np.abs(np.diag(pairs) - m / 2).max() <= 7 * (m / 4) ** 0.5
    assert np.abs(pairs[~np.eye(45, dtype=bool)] - m / 4).max() <= 7 * (m * 3 / 16) ** 0.5


def test_olh_reports_at_random_have_any_seed_and_any_bucket() -> None:
    """Sixteenths of the seeds and three buckets have their share of 30,000 reports, to 6 sd (4e-8
    in all).
    """
    m = 30_000
    reports = RPA().reports(OLH(0.5, 102, 3), m, rng())
    for values, k in ((reports["seed"] >> np.uint32(28), 16), (reports["bucket"], 3)):
        assert (
            np.abs(np.bincount(values, minlength=k) - m / k).max()
            <= 6 * (m / k * (1 - 1 / k)) ** 0.5
        )


@each_oracle
@pytest.mark.parametrize("against", ["raw", "projected"])
def test_all_malicious_users_send_one_report(oracle: FrequencyOracle, against: str) -> None:
    reports = MLA(against=against).reports(oracle, 500, rng())
    assert np.unique(reports, axis=0).shape[0] == 1
    others = MLA(against=against).reports(oracle, 500, rng(11))
    everything = isinstance(oracle, OUE) and against == "raw"
    assert (reports.tobytes() == others.tobytes()) is everything


def test_an_olh_report_is_the_best_of_its_seeds() -> None:
    """Among the buckets of the seeds that the generator gives: the fullest, or the one of nearest
    to d/2 items.
    """
    oracle = OLH(1.0, 102, 4)
    seeds = rng().integers(0, 1 << 32, size=1_000, dtype=np.uint32)
    places = oracle.buckets(seeds[:, None], np.arange(102))
    sizes = np.stack([(places == bucket).sum(axis=1) for bucket in range(4)])
    raw, projected = (
        MLA(against=against).support(oracle, rng()).sum() for against in ("raw", "projected")
    )
    assert raw == sizes.max()
    assert abs(projected - 51) == np.abs(sizes - 51).min()


def test_a_search_in_pieces_is_one_search(monkeypatch: pytest.MonkeyPatch) -> None:
    oracle = ORACLES[2]
    whole = MLA().reports(oracle, 3, rng())
    monkeypatch.setattr("ldprecover.crafting.size_search._ALL_CELLS", 5_000)
    assert np.array_equal(MLA().reports(oracle, 3, rng()), whole)


def test_the_item_may_be_named() -> None:
    labels = ["a", "b", "c"]
    assert MLA("b").resolve(labels) == MLA(1)
    assert MLA().resolve(labels) == MLA()
    assert GRR(1.0, 3).support_counts(MLA(1).reports(GRR(1.0, 3), 9, rng())).tolist() == [0, 9, 0]
    with pytest.raises(ParameterError, match="no item is labelled 'd'"):
        MLA("d").resolve(labels)
    with pytest.raises(ParameterError, match="'b' is a label"):
        MLA("b").reports(GRR(1.0, 3), 9, rng())
