"""The parts of un-mixing: shapes, the grid, spikes, relations of sums, the search for a shift."""

import math

import numpy as np
import pytest

from ldprecover import GRR, OLH, OUE, FrequencyOracle, frequency_oracle
from ldprecover.protocols import HR, LLH, SS, SUE, crafter_of
from ldprecover.recovery import METHODS
from ldprecover.recovery.unmixing import estimates_of_counts
from ldprecover.recovery.unmixing.model.density import groups
from ldprecover.recovery.unmixing.model.grid import Grid, grid_over
from ldprecover.recovery.unmixing.model.mixture import Mixture
from ldprecover.recovery.unmixing.model.posterior import onto_simplex
from ldprecover.recovery.unmixing.model.relations import Relation, Sums
from ldprecover.recovery.unmixing.model.search import ShiftRange, best_shifts
from ldprecover.recovery.unmixing.model.shapes import (
    ATTACKED,
    COARSE,
    HONEST,
    Shape,
    lognormal,
    power_law,
    shapes,
)
from ldprecover.recovery.unmixing.model.spikes import NONE, Spikes, on_targets


@pytest.mark.parametrize(
    ("shape", "nodes", "first", "last", "mean"),
    [
        (lognormal(1, 0.5, 0.95, 16), 228, 0.000515159, 0.995641, 0.05974843),
        (power_law(1.25, 0.95, 16), 301, 0.0103974, 0.822367, 0.05974843),
        (lognormal(2, 0.85, 0.1, 16), 219, None, 0.95612, 0.00704225),
    ],
    ids=["lognormal", "power-law", "dominant"],
)
def test_shapes_are_those_of_the_prototype(
    shape: Shape, nodes: int, first: float | None, last: float, mean: float
) -> None:
    assert shape.nodes.size == nodes
    assert shape.nodes[-1] == pytest.approx(last, rel=1e-5)
    assert shape.weights @ shape.nodes == pytest.approx(mean, rel=1e-5)
    assert shape.weights.sum() == pytest.approx(1 - shape.zero)
    if first is not None:
        assert shape.nodes[0] == pytest.approx(first, rel=1e-5)


@pytest.mark.parametrize("d", [16, 102, 5000])
@pytest.mark.parametrize("kind", [HONEST, ATTACKED, COARSE])
def test_every_shape_has_mean_one_over_d_on_the_grid_too(kind: str, d: int) -> None:
    """But for what lies beyond the grid, and for the spreading of nodes, which the mean of a convex
    law shows.
    """
    grid = Grid(0.002, 1024, 1.2)
    for shape in shapes(kind, d):
        mass, moment = shape.masses(1.0, grid, 2).sum(axis=1)
        assert mass == pytest.approx(1, abs=1e-9)
        assert moment == pytest.approx(1 / d, rel=0.02)
    assert np.logaddexp.reduce([s.log_prior for s in shapes(kind, d)]) == pytest.approx(0, abs=0.2)


def test_a_density_integrates_to_one() -> None:
    grid = grid_over(-0.1, 1.2, 0.004, 0.02)
    x = np.arange(-0.2, 1.5, grid.step / 4)
    sd = np.full(x.size, 0.02)
    spikes = Spikes(5, True, 0.0).transform(0.4, 40, grid)
    honest = np.fft.rfft(lognormal(1, 0.5, 1, 40).masses(0.9, grid, 1), axis=1)
    (group,) = groups(sd, grid, [np.ones(x.size, np.bool_)])
    density = group.at(x, 1).densities(honest * spikes)[0]
    assert density.sum() * grid.step / 4 == pytest.approx(1, abs=1e-6)


def test_few_items_have_the_densities_that_many_have() -> None:
    """Where the transforms are many they are summed directly."""
    grid = grid_over(-0.1, 0.5, 0.01, 0.02)
    x = np.linspace(-0.05, 0.4, 40)
    transforms = np.fft.rfft(lognormal(1, 0.5, 1, 40).masses(1.0, grid, 3), axis=1)
    everyone = np.ones(40, np.bool_)
    few = np.arange(40) < 5
    (many,) = groups(np.full(40, 0.01), grid, [everyone])
    (apart,) = groups(np.full(40, 0.01), grid, [few])
    transformed, direct = many.at(x, 100), apart.at(x, 100)
    assert transformed.basis is None
    assert direct.basis is not None
    expected = transformed.densities(transforms)[:, :5]
    np.testing.assert_allclose(direct.densities(transforms), expected, rtol=1e-9, atol=1e-12)


def test_narrow_spikes_have_the_gamma_laws_transform_and_mean() -> None:
    grid = Grid(0.01, 512, 1.0)
    result = Spikes(4, True, 0.0).transform(0.8, 10, grid)
    np.testing.assert_allclose(
        result, 0.6 + 0.4 * (1 + 1j * grid.omega * 0.2 / 300) ** -300.0, rtol=1e-9, atol=1e-12
    )
    beyond = Spikes(4, True, 0.0).transform(8, 10, grid)
    np.testing.assert_allclose(beyond, 0.6)


def test_little_noise_leaves_the_estimates_as_they_are() -> None:
    """An item's mean rises with its estimate, and is within its noise where it is far above."""
    d, sd = 60, np.full(60, 0.0005)
    z = np.sort(np.concatenate([np.linspace(0, 0.005, 40), np.linspace(0.011, 0.09, 20)]))
    z /= z.sum()
    mixture = Mixture(z, sd, grid_over(0.0, 0.1, 0.0005, 0.0005), ())
    result = list(mixture.hypotheses(shapes(HONEST, d), [(Relation(1, 0, 0, 0), NONE)], 0.0))
    best = max(result, key=lambda guess: guess.score)
    mean = best.moments().mean
    assert (np.diff(mean) > 0).all()
    far = z > 20 * sd
    assert far.any()
    assert (np.abs(mean - z) < sd)[far].all()


def sums_of(oracle: FrequencyOracle, support: np.ndarray, b: float) -> Sums:
    """Return the sums of exact estimates where a share b of the reports support items as given."""
    d = oracle.domain_size
    f = np.arange(1, d + 1) / (d * (d + 1) / 2)
    share = (1 - b) * (oracle.q + f * (oracle.p - oracle.q)) + b * support
    return Sums.of(oracle, (share - oracle.q) / (oracle.p - oracle.q), np.full(d, 1e-4))


SHIFTED = [
    (GRR(1, 20), np.eye(20)[4], 0),
    (OUE(1, 20), np.eye(20)[4], 0),
    (SUE(1, 20), np.eye(20)[4], 0),
    (SS(1, 20, 5), np.r_[np.ones(5), np.zeros(15)], -1),
    (SS(1, 20, 5), np.r_[1, np.full(19, 4 / 19)], 0),
    (SS(1, 20, 5), np.r_[1, 1, np.full(18, 3 / 18)], 1),
]


@pytest.mark.parametrize(
    ("oracle", "support", "which"), SHIFTED, ids=lambda x: getattr(x, "protocol", None)
)
def test_the_shift_tells_the_share_and_the_spikes(
    oracle: FrequencyOracle, support: np.ndarray, which: int
) -> None:
    """Of reports that support some items and others at one rate below q."""
    b, scale = 0.1, oracle.p - oracle.q
    low = float(support.min())
    c = b * (oracle.q - low) / scale
    sums = sums_of(oracle, support, b)
    displacements = crafter_of(oracle).displacements
    assert displacements is not None
    assert displacements[which] == pytest.approx(oracle.q - low)
    share = sums.displacements[which]
    result = [r for r in sums.at(c) if r.a == pytest.approx(1 - c / share) and r.rho > 0]
    rho = b * (support - low).sum() / scale
    assert any(
        r.a == pytest.approx(1 - b) and r.rho == pytest.approx(rho, abs=0.01) for r in result
    )


def test_sum_of_hashed_reports_gives_the_share_without_a_shift() -> None:
    oracle = OLH(1, 20, 4)
    sums = sums_of(oracle, np.r_[1, np.full(19, oracle.q)], 0.1)
    assert sums.displacements == ()
    assert [r.a for r in sums.at(0.0)] == pytest.approx([0.9] * 3)
    middle = [r.rho for r in sums.at(0.0)][1]
    assert middle == pytest.approx(0.1 * (1 - oracle.q) / (oracle.p - oracle.q))
    assert sums.encoded_reports() is None


@pytest.mark.parametrize("oracle", [OLH(1, 20, 4), LLH(1, 20, 3)], ids=["olh", "llh"])
def test_even_surplus_is_of_all_items_and_needs_no_spikes(oracle: FrequencyOracle) -> None:
    d, b = 20, 0.1
    others = (d - 1) * oracle.q
    support = np.full(d, (1 + others) / d)  # of unperturbed reports of uniform items
    sums = sums_of(oracle, support, b)
    (relation,) = (each for each in sums.even_surplus() if abs(each.a - (1 - b)) < 1e-6)
    assert relation.rho == 0
    added = (support[0] - oracle.q) / (oracle.p - oracle.q)
    assert -relation.c == pytest.approx(b * added)
    assert not list(sums_of(OUE(1, d), np.eye(d)[4], b).even_surplus())


@pytest.mark.parametrize("oracle", [OUE(1, 20), SUE(1, 20)], ids=lambda o: o.protocol)
def test_reports_of_one_item_each_are_known_by_their_sum(oracle: FrequencyOracle) -> None:
    sums = sums_of(oracle, np.eye(20)[4], 0.1)
    relation = sums.encoded_reports()
    assert relation is not None
    scale = oracle.p - oracle.q
    assert [relation.a, relation.c, relation.rho] == pytest.approx(
        [0.9, 0.1 * oracle.q / scale, 0.1 / scale]
    )
    assert sums_of(oracle, np.eye(20)[4], 0.0).encoded_reports() is None


def test_refuses_protocol_that_shifts_items_unequally() -> None:
    assert crafter_of(HR(1, 20)).displacements is None
    reason = METHODS["unmix"].refusal(HR(1, 20), frozenset({"counts", "n"}))
    assert reason is not None
    assert reason.startswith("unmix: hr lacks")


def test_best_shifts_are_the_best_and_its_neighbours() -> None:
    result = best_shifts(lambda c: -((c - 0.0377) ** 2) * 1e4, ShiftRange(0.12, 0.002))
    best = [c for c, weight in result.items() if weight > 0]
    assert best == [pytest.approx(0.0377, abs=0.001)]
    assert sum(math.exp(weight) for weight in result.values()) == pytest.approx(4)
    assert np.diff(sorted(result)) == pytest.approx([0.01 / 9] * 2, abs=1e-9)


def test_a_shift_of_nothing_has_one_neighbour() -> None:
    result = best_shifts(lambda c: -c, ShiftRange(0.12, 0.002))
    assert sorted(result)[0] == 0
    assert len(result) == 2


def test_equal_variances_make_the_conditioning_a_projection() -> None:
    from ldprecover import project_simplex

    x = np.array([0.5, 0.4, -0.2, 0.1, 0.6])
    np.testing.assert_allclose(onto_simplex(x, np.full(5, 0.01)), project_simplex(x), atol=1e-12)


def test_certain_items_do_not_move() -> None:
    result = onto_simplex(np.array([0.5, 0.2, 0.1]), np.array([1e-12, 0.01, 0.03]))
    np.testing.assert_allclose(result, [0.5, 0.25, 0.25], atol=1e-9)


@pytest.mark.parametrize("protocol", ["grr", "oue", "olh", "sue", "ss"])
def test_noise_finer_than_the_grid_is_widened_to_a_step(protocol: str) -> None:
    """All fakes name one item of very many: estimates spread further than 16,384 points reach."""
    oracle = frequency_oracle(protocol, 0.5, 4000)
    counts = np.full(4000, 1e7 * oracle.q)
    counts[3] = 1e7
    measured = estimates_of_counts(oracle, oracle.estimate(counts, 10**7), 10**7)
    grid = grid_over(
        float(measured.z.min()),
        float(measured.z.max()),
        float(measured.sd.min()),
        float(measured.sd.max()),
    )
    assert np.isfinite(grid.damping(float(measured.sd.min()))).all()
    assert grid.damping(1e-300)[-1] < 0.01


@pytest.mark.parametrize(
    ("t", "d", "kinds"), [(3, 40, 6), (1, 16, 6), (8, 40, 6), (9, 40, 4), (21, 40, 2)]
)
def test_targets_that_may_not_be_all_leave_spikes_for_others(t: int, d: int, kinds: int) -> None:
    result = on_targets(range(t), d, all_known=False)
    assert len(result) == kinds
    assert sum(math.exp(each.log_prior) for each in result) == pytest.approx(1)
    for each in result:
        assert t * each.share(d) + (d - t) * each.share_of_others(d) == pytest.approx(each.k)
    (first, second) = on_targets(range(t), d, all_known=True)
    assert first.others == second.others == 0
    assert first.share_of_others(d) == 0
    assert math.exp(first.log_prior) + math.exp(second.log_prior) == pytest.approx(1)


def test_transform_of_others_has_their_share() -> None:
    """The derivative of a transform at 0 is -i times the mean."""
    grid = grid_over(-0.1, 1.0, 0.01, 0.01)
    spikes = Spikes(12, True, 0.0, True, 9)
    for transform, mean in (
        (spikes.transform(0.6, 30, grid), 0.6 / 12),
        (spikes.transform_of_others(0.6, 30, grid), 0.6 / 12 * 9 / 27),
    ):
        assert transform[0] == pytest.approx(1)
        assert -transform[1].imag / grid.omega[1] == pytest.approx(mean, rel=0.01)


@pytest.mark.parametrize("share", [0.02, 0.31, 0.5])
def test_item_that_the_law_does_not_explain_keeps_its_estimate(share: float) -> None:
    """Of half of the users the mean was off by ten standard deviations, on the way to 1/d."""
    d, noise = 100, 1e-3
    z, sd = np.full(d, (1 - share) / (d - 1)), np.full(d, noise)
    z[0] = share
    model = Mixture(z, sd, grid_over(0.0, share + 2 * noise, noise, noise), ())
    relation = Relation(1.0, 0.0, 0.0, 0.0)
    (hypothesis,) = model.hypotheses([lognormal(1.0, 0.0, 1.0, d)], [(relation, NONE)], 0.0)
    moments = hypothesis.moments()
    assert abs(moments.mean[0] - share) < 0.2 * noise
    assert math.sqrt(moments.square[0] - moments.mean[0] ** 2) < 1.1 * noise
