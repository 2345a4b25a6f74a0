"""The parts of un-mixing: shapes, the grid, spikes, relations of sums, the search for a shift."""

import math

import numpy as np
import pytest

from ldprecover import GRR, OUE, FrequencyOracle, frequency_oracle
from ldprecover.crafting import crafter_of
from ldprecover.protocols import SS, SUE
from ldprecover.recovery.unmixing import NoisyEstimates, estimates_of_counts, unmix
from ldprecover.recovery.unmixing.model.density import Grid, grid_over
from ldprecover.recovery.unmixing.model.effects import NONE, Relation, Spikes, Sums
from ldprecover.recovery.unmixing.model.mixture import Mixture
from ldprecover.recovery.unmixing.model.posterior import hedged
from ldprecover.recovery.unmixing.model.shapes import lognormal, shapes


@pytest.mark.parametrize("d", [16, 102, 5000])
def test_every_shape_has_mean_one_over_d_on_the_grid_too(d: int) -> None:
    """But for what lies beyond the grid, and for the spreading of nodes, which the mean of a convex
    law shows.
    """
    grid = Grid(0.002, 1024, 1.2)
    for shape in shapes(d, bounded=True):
        mass, moment = shape.masses(1.0, grid, 2).sum(axis=1)
        assert mass == pytest.approx(1, abs=1e-9)
        assert moment == pytest.approx(1 / d, rel=0.02)
    log_priors = [s.log_prior for s in shapes(d, bounded=True)]
    assert np.logaddexp.reduce(log_priors) == pytest.approx(0)


def sums_of(oracle: FrequencyOracle, support: np.ndarray, b: float) -> Sums:
    """Return the sums of exact estimates where a share b of the reports support items as given."""
    d, scale = oracle.domain_size, oracle.p - oracle.q
    f = np.arange(1, d + 1) / (d * (d + 1) / 2)
    z = (1 - b) * f + b * (support - oracle.q) / scale
    return Sums.of(oracle, z, np.full(d, 1e-4))


ONE = np.eye(20)[4]


@pytest.mark.parametrize(
    ("oracle", "support", "which"),
    [
        (GRR(1, 20), ONE, 0),
        (OUE(1, 20), ONE, 0),
        (SUE(1, 20), ONE, 0),
        (SS(1, 20, 5), np.r_[np.ones(5), np.zeros(15)], -1),
        (SS(1, 20, 5), np.r_[1, np.full(19, 4 / 19)], 0),
        (SS(1, 20, 5), np.r_[1, 1, np.full(18, 3 / 18)], 1),
    ],
    ids=lambda x: getattr(x, "protocol", None),
)
def test_the_shift_tells_the_share_and_the_spikes(
    oracle: FrequencyOracle, support: np.ndarray, which: int
) -> None:
    """Of reports that support some items and others at one rate below q."""
    b, scale, low = 0.1, oracle.p - oracle.q, float(support.min())
    sums, displacements = sums_of(oracle, support, b), crafter_of(oracle).displacements
    assert displacements is not None
    assert displacements[which] == pytest.approx(oracle.q - low)
    exact = pytest.approx([1 - b, b * (support - low).sum() / scale], abs=0.01)
    relations = sums.at(b * (oracle.q - low) / scale)
    assert any([r.a, r.rho] == exact for r in relations)


@pytest.mark.parametrize("number", [1, 4])
@pytest.mark.parametrize("protocol", ["olh", "llh"])
def test_sum_alone_tells_the_share_where_nothing_shifts(protocol: str, number: int) -> None:
    """Of reports that support one item, or several, and others as often as honest ones do."""
    oracle = frequency_oracle(protocol, 1.0, 20)
    p, q = oracle.p, oracle.q
    sums = sums_of(oracle, np.where(np.arange(20) < number, 1.0, q), 0.1)
    exact = pytest.approx([0.9, 0.1 * number * (1 - q) / (p - q)])
    assert any([r.a, r.rho] == exact for r in sums.at(0.0))


@pytest.mark.parametrize("oracle", [OUE(1, 20), SUE(1, 20)], ids=lambda o: o.protocol)
def test_reports_of_one_item_each_are_known_by_their_sum(oracle: FrequencyOracle) -> None:
    relation, scale = sums_of(oracle, ONE, 0.1).encoded_reports(), oracle.p - oracle.q
    assert relation is not None
    parts = [relation.a, relation.c, relation.rho]
    assert parts == pytest.approx([0.9, 0.1 * oracle.q / scale, 0.1 / scale])
    assert sums_of(oracle, ONE, 0.0).encoded_reports() is None


@pytest.mark.parametrize("protocol", ["grr", "oue", "olh", "sue", "ss"])
def test_noise_finer_than_the_grid_is_widened_to_a_step(protocol: str) -> None:
    """All fakes name one item of very many: estimates spread further than 16,384 points reach."""
    oracle = frequency_oracle(protocol, 0.5, 4000)
    frequencies = np.append(1, np.full(3999, -oracle.q)) / (oracle.p - oracle.q)
    measured = estimates_of_counts(oracle, frequencies, 10**7)
    ends = [float(end(x)) for x in (measured.z, measured.sd) for end in (np.min, np.max)]
    grid = grid_over(ends[0], ends[1], ends[2], ends[3])
    assert np.isfinite(grid.damping(ends[2])).all()
    assert grid.damping(1e-300)[-1] < 0.01


@pytest.mark.parametrize("share", [0.02, 0.31, 0.5])
def test_item_that_the_law_does_not_explain_keeps_its_estimate(share: float) -> None:
    """Of half of the users the mean was off by ten standard deviations, on the way to 1/d."""
    d, noise = 100, 1e-3
    z, sd = np.append(share, np.full(d - 1, (1 - share) / (d - 1))), np.full(d, noise)
    model = Mixture(z, sd, 2 * noise)
    relation = Relation(1.0, 0.0, 0.0, 0.0)
    (hypothesis,) = model.hypotheses([lognormal(1.0, 0.0, d)], [(relation, NONE)], 0.0)
    moments = hypothesis.moments()
    assert abs(moments.mean[0] - share) < 0.2 * noise
    assert math.sqrt(moments.square[0] - moments.mean[0] ** 2) < 1.1 * noise


def test_spikes_are_cut_off_where_the_grid_ends() -> None:
    """Spikes of a mean beyond the grid would otherwise come round to its start."""
    grid = Grid(0.01, 256, 1.0)
    s = (np.arange(10_000) + 0.5) / 10_000
    for mean in (0.2, 1.0, 5.0):
        masses = np.exp(-s / mean) / mean / s.size
        exact = np.exp(-1j * grid.omega[:40, None] * s) @ masses
        transform = Spikes(20, False, 0.0).transform(20 * mean, 20, grid)
        np.testing.assert_allclose(transform[:40], exact, atol=1e-4)


def test_noise_that_all_items_share_counts_in_the_sum() -> None:
    """Some reports support all items under linear hashing."""
    oracle, n, d = frequency_oracle("llh", 6.0, 60), 30_000, 60
    z, sd = np.full(d, 1 / d), np.full(d, float(oracle.variance(0.0, n)) ** 0.5)
    variance, _ = oracle.laws.largest_sum_moments(n) or (0.0, 0.0)
    sums = Sums.of(oracle, z, sd, n)
    assert sums.error == pytest.approx(variance**0.5)
    assert sums.error > 3 * math.sqrt(d) * sd[0]
    assert Sums.of(OUE(1, d), z, sd, n).shared == 0
    shifted = [unmix(oracle, NoisyEstimates(z=z + c, sd=sd, n=n)) for c in (0.0, sd[0])]
    assert np.abs(shifted[1].frequencies - shifted[0].frequencies).max() < 0.1 * sd[0]


@pytest.mark.parametrize(("variance", "part"), [(0.2, 0.1), (5.0, 0.5), (1e4, 0.5)])
def test_result_is_hedged_as_far_as_it_may_cost(variance: float, part: float) -> None:
    """A squared distance of 1, of which 5 % of the variance may be added: 0.01 is a tenth of it."""
    moved = hedged(np.array([0.4, 0.6]), np.full(2, variance / 2), np.array([1.2, 0.0]))
    np.testing.assert_allclose(moved, [0.4 + part * 0.8, 0.6 - part * 0.6])
