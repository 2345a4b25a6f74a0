"""The recovery methods of this package, one module each."""

from ldprecover.recovery.methods import (
    auto,
    conditional,
    detection,
    diffstats,
    fiad,
    kmeans,
    ldprecover,
    likelihood,
    post_processing,
    unmix,
)

__all__ = ["BUILT_IN"]

BUILT_IN = (
    auto.METHOD,
    ldprecover.METHOD,
    *post_processing.METHODS,
    detection.METHOD,
    conditional.METHOD,
    diffstats.METHOD,
    fiad.METHOD,
    *kmeans.METHODS,
    *likelihood.METHODS,
    unmix.METHOD,
)
