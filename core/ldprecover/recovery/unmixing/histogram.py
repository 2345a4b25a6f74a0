"""Estimates from the histogram of a round's reports, for protocols with few different reports."""

import numpy as np

from ldprecover.counting.tally import Tally
from ldprecover.errors import ParameterError
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.conclusions import Dropped
from ldprecover.recovery.unmixing.cells import without_full_cells
from ldprecover.recovery.unmixing.estimates import NoisyEstimates
from ldprecover.recovery.unmixing.model.noise import noise_sd, rounded
from ldprecover.recovery.unmixing.raised_sets import SetSearch


def estimates_of_histogram(
    oracle: FrequencyOracle, tally: Tally, targets: tuple[int, ...] = ()
) -> NoisyEstimates:
    """Return the estimates without over-full cells, and the additions that the rest may have.

    A cell is one of the different reports. The `targets`, or else a set that the histogram shows,
    are the suspects. Raises ParameterError if there are no reports, or all are dropped.
    """
    if not tally.n:
        raise ParameterError("unmix: there are no reports")
    histogram = tally.summary
    cells = without_full_cells(oracle, histogram)
    filled = cells.filled(histogram)
    dropped = int(histogram[cells.dropped].sum())
    n = tally.n - dropped
    if not n:
        raise ParameterError("all reports would be dropped, and nothing is left to estimate from")
    honest = float(filled.sum())
    shares = cells.sums.counts(filled) / honest
    z = (shares - oracle.q) / (oracle.p - oracle.q)
    usual = float(np.median(shares))
    sd = noise_sd(z, round(honest), oracle.p, oracle.q, usual) * rounded(np.sqrt(cells.inflation()))
    search = SetSearch(cells, histogram)
    raised = targets or search.best(z)
    return NoisyEstimates(
        z,
        sd,
        n,
        suspects={} if targets else dict.fromkeys(raised, 1.0),
        dropped=(_description(cells.dropped.size, dropped),) if cells.dropped.size else (),
        honest_kept=n / honest,
        additions=tuple(search.additions_for(raised)) if len(raised) > 1 else (),
    )


def _description(cells: int, reports: int) -> Dropped:
    which = "one kind of report" if cells == 1 else f"{cells:,} kinds of reports"
    return Dropped("frequent reports", f"{which} that far too many users sent", reports)
