"""Hypotheses of what users hold, for estimates without the part that an attack added."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from ldprecover.recovery.unmixing.model.density import grid_over
from ldprecover.recovery.unmixing.model.hypotheses import Hypothesis
from ldprecover.recovery.unmixing.model.mixture import Mixture
from ldprecover.recovery.unmixing.model.relations import Relation
from ldprecover.recovery.unmixing.model.shapes import free_levels, shapes
from ldprecover.recovery.unmixing.model.spikes import NONE, on_targets
from ldprecover.types import FloatArray

_MOST_POPULARITY = 0.99  # a share of the users
_LEAST_POPULARITY = 0.001
_POPULARITIES = [0.5, 0.9, 0.98]  # that dominant items may have
_DOMINANT, _CLEAR = 0.2, 4.0  # a share of the users, and deviations of noise


def remainder_hypotheses(
    z: FloatArray,
    sd: FloatArray,
    honest: float,
    log_prior: float,
    *,
    targets: Sequence[int],
    canaries: Sequence[int],
    is_sum_exact: bool,
) -> Iterator[Hypothesis]:
    """Yield the hypotheses of all shapes and of free levels, and of popular targets.

    The estimates z with noise sd are `honest`, the share of honest reports, times f. The `targets`
    may be more popular than the law of the other items says, which is as likely. The `canaries` are
    held by nobody. `is_sum_exact` says that the sum of the estimates has no noise.
    """
    deviations = float(sd.min()), float(sd.max())
    grid = grid_over(float(z.min()), max(float(z.max()), 0.0) + 2 * deviations[1], *deviations)
    total = float(z.sum()) / honest
    popularities, price = _POPULARITIES, 0.0
    if targets:
        surplus = float(z[list(targets)].sum()) / honest - total * len(targets) / z.size
        popularities = [min(surplus, _MOST_POPULARITY)]
    else:  # items that hold much of the mass leave less to the law of the others
        targets = np.flatnonzero(z > np.maximum(_DOMINANT * honest, _CLEAR * sd)).tolist()
        price = len(targets) * math.log(z.size)  # as of free levels
    model = Mixture(z, sd, grid, targets, canaries)
    log_weight = 0.0
    if not is_sum_exact:
        log_weight = -((total - 1) ** 2) / (2 * float(sd @ sd) / honest**2)
    listed = shapes(z.size - len(canaries), flat=True)
    if targets and min(popularities) > _LEAST_POPULARITY:
        spikes = on_targets(targets, z.size, all_known=True)
        relations = [Relation(honest, 0.0, 0.0, log_weight, each) for each in popularities]
        choices = [(relation, each) for relation in relations for each in spikes]
        yield from model.hypotheses(listed, choices, log_prior - price)
    relation = Relation(honest, 0.0, 0.0, log_weight)
    possible = np.ones(z.size, np.bool_)
    possible[list(canaries)] = False
    free = free_levels(z[possible] / honest, sd[possible] / honest)
    yield from model.hypotheses((*listed, free), [(relation, NONE)], log_prior)
