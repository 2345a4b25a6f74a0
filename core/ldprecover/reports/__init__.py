"""Reports of a round: their tallies, passes over their blocks, and tallies of simulated users."""

from ldprecover.reports.sample import Sample
from ldprecover.reports.source import ReportSource
from ldprecover.reports.subset_sampler import SubsetSampler
from ldprecover.reports.tally import Tally
from ldprecover.reports.tally_sampler import TallySampler, tally_sampler

__all__ = [
    "ReportSource",
    "Sample",
    "SubsetSampler",
    "Tally",
    "TallySampler",
    "tally_sampler",
]
