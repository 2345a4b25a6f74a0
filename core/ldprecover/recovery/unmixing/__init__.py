"""Un-mixing: separates genuine frequencies, an attack's additions and noise in a round's counts."""

from ldprecover.recovery.unmixing.estimates import (
    NoisyEstimates,
    estimates_of_counts,
    estimates_of_histogram,
    noise_sd,
)
from ldprecover.recovery.unmixing.filters.report_filters import filter_reports
from ldprecover.recovery.unmixing.model.mixture import History
from ldprecover.recovery.unmixing.model.posterior import Unmixed
from ldprecover.recovery.unmixing.unmixer import history_of, unmix

__all__ = [
    "History",
    "NoisyEstimates",
    "Unmixed",
    "estimates_of_counts",
    "estimates_of_histogram",
    "filter_reports",
    "history_of",
    "noise_sd",
    "unmix",
]
