"""The paper's parameters, targets drawn with a seed, and the number of malicious users."""

import numpy as np

from ldprecover import ParameterError
from ldprecover._checks import check_real
from ldprecover.items import whole

BETA, EPSILON, ETA = 0.05, 0.5, 0.2
"""The paper's setting (VI-A): malicious share, privacy budget, assumed m/n."""

TARGETS = 10
"""The paper's number r of targets (VI-A)."""

PAPER_USERS = {"cities": 389_894, "fire": 667_574}
"""Genuine users of the paper's data sets, which the shipped ones stand in for."""

_STREAM = 3
"""Stream of the seed; populations and campaigns of the same seed use the streams 0 to 2."""


def draw_targets(d: int, r: int, seed: int) -> tuple[int, ...]:
    """Return r of d items, drawn uniformly, sorted. Raises ParameterError unless 1 <= r < d."""
    if not 1 <= (whole(r) or 0) < d:
        raise ParameterError(
            f"the number of targets must be from 1 to {d - 1}, as there are {d} items, not {r}"
        )
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STREAM,)))
    return tuple(sorted(rng.choice(d, size=r, replace=False).tolist()))


def malicious_users(n: int, beta: float) -> int:
    """Return m = n beta/(1 - beta), rounded, so that beta = m/(n + m).

    Raises ParameterError unless 0 <= beta <= 0.9.
    """
    beta = check_real("beta", beta, 0, 0.9)
    return round(n * beta / (1 - beta))
