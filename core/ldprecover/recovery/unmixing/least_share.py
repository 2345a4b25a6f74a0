"""The least share of malicious reports that a round shows, whatever its honest users hold."""

import math
from statistics import NormalDist

import numpy as np

from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.unmixing.evidence import noise_of_none
from ldprecover.recovery.unmixing.filters.rules import set_laws
from ldprecover.types import FloatArray, Int64Array

_CONFIDENCE = 0.975
_TINY = 1e-12
_HOLDERS = np.linspace(0.0, 1.0, 41)  # shares of the users who hold an item of a set
_RANKS = (0.1, 0.25, 0.5)  # of the estimates, for the shift


def least_of_set(oracle: FrequencyOracle, observed: Int64Array) -> float:
    """Return the least number of malicious reports by how many items of a set reports support.

    `observed[k]` reports support k of its t items. Any share of the users may hold one of these.
    """
    laws = set_laws(oracle, observed.size - 1)
    return least_number((1 - _HOLDERS[:, None]) * laws[0] + _HOLDERS[:, None] * laws[1], observed)


def least_number(laws: FloatArray, observed: Int64Array) -> float:
    """Return the least number of malicious reports by the numbers of reports in ordered bins.

    Honest ones follow one of the `laws`, (laws, bins). Many of them would fill the first bins, and
    the last bins, more than they are filled. The bound holds with a confidence of 97.5 % for all
    bins together.
    """
    n = float(observed.sum())
    honest = np.full(len(laws), n)
    deviations = NormalDist().inv_cdf(1 - (1 - _CONFIDENCE) / (2 * observed.size))
    for law, counts in ((laws, observed), (laws[:, ::-1], observed[::-1])):
        below, reports = np.minimum(np.cumsum(law, axis=1)[:, :-1], 1.0), np.cumsum(counts)[:-1]
        # The largest m for which a binomial number of m trials is as small, by its normal limit.
        spread = deviations * np.sqrt(1 - below)
        root = (spread + np.sqrt(spread**2 + 4 * reports)) / 2
        honest = np.minimum(honest, (root**2 / np.maximum(below, _TINY)).min(axis=1, initial=n))
    return n - float(honest.max())


def least_by_shift(oracle: FrequencyOracle, z: FloatArray, n: int) -> float:
    """Return the least share by the shift of the lowest of the d estimates z of n reports.

    Frequencies are at least 0, so a quantile of the estimates is that of the noise, or higher. Each
    malicious report lowers an item by at most q/(p - q).
    """
    normal, sd, shift = NormalDist(), noise_of_none(oracle, n), 0.0
    deviations = normal.inv_cdf(1 - (1 - _CONFIDENCE) / len(_RANKS))
    for rank in _RANKS:
        quantile = normal.inv_cdf(rank)
        error = deviations * math.sqrt(rank * (1 - rank) / z.size) / normal.pdf(quantile)
        shift = max(shift, sd * (quantile - error) - float(np.quantile(z, rank)))
    return shift * (oracle.p - oracle.q) / oracle.q
