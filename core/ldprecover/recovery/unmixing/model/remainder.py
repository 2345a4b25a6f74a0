"""Hypotheses of what users hold, for estimates without the part that an attack added."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import itemgetter

import numpy as np

from ldprecover.recovery.unmixing.model.density import grid_over
from ldprecover.recovery.unmixing.model.free_levels import free_levels
from ldprecover.recovery.unmixing.model.hypotheses import Hypothesis
from ldprecover.recovery.unmixing.model.mixture import Mixture
from ldprecover.recovery.unmixing.model.relations import Relation
from ldprecover.recovery.unmixing.model.shapes import ATTACKED, HONEST, shapes
from ldprecover.recovery.unmixing.model.spikes import NONE, Spikes, on_targets
from ldprecover.recovery.unmixing.prior import PRIOR
from ldprecover.types import FloatArray

_MOST_POPULARITY = 0.99  # a share of the users
_LEAST_POPULARITY = 0.001


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
    model = Mixture(z, sd, grid, targets, canaries)
    total = float(z.sum()) / honest
    log_weight = 0.0
    if not is_sum_exact:
        log_weight = -((total - 1) ** 2) / (2 * float(sd @ sd) / honest**2)
    listed = shapes(HONEST, z.size - len(canaries))
    if targets:
        usual = total * len(targets) / z.size
        surplus = float(z[list(targets)].sum()) / honest - usual
        popularity = min(surplus, _MOST_POPULARITY)
        if popularity > _LEAST_POPULARITY:
            popular = Relation(honest, 0.0, 0.0, log_weight, popularity)
            spikes = on_targets(targets, z.size, all_known=True)
            choices = [(popular, each) for each in spikes]
            yield from model.hypotheses(listed, choices, log_prior)
    relation = Relation(honest, 0.0, 0.0, log_weight)
    possible = np.ones(z.size, np.bool_)
    possible[list(canaries)] = False
    free = free_levels(z[possible], sd[possible]).shape(int(possible.sum()))
    plain = list(model.hypotheses(listed, [(relation, NONE)], log_prior))
    yield from plain
    # The mean of d draws is not the mean of their law, least so if it is heavy-tailed.
    _, best = max(zip((each.score for each in plain), listed, strict=True), key=itemgetter(0))
    price = -math.log(len(PRIOR.scales) + 1)
    rescaled = [best.rescaled(scale, price) for scale in PRIOR.scales]
    yield from model.hypotheses((*rescaled, free), [(relation, NONE)], log_prior)
    # The sum of two laws: with little noise, data fit no single one.
    log_weight -= math.log(len(PRIOR.small_shares))
    choices = [
        (replace(relation, log_weight=log_weight, popularity=each), Spikes(z.size, False, 0.0))
        for each in PRIOR.small_shares
    ]
    broad = shapes(ATTACKED, z.size - len(canaries))
    yield from model.hypotheses(broad, choices, log_prior)
