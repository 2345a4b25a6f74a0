"""Estimates with their noise, given which items the users hold: from counts, or a histogram."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ldprecover.errors import ParameterError
from ldprecover.items import indices_named
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.conclusions import ALIKE, Dropped
from ldprecover.recovery.unmixing.cells import without_full_cells
from ldprecover.recovery.unmixing.model.density import rounded
from ldprecover.recovery.unmixing.prior import THRESHOLDS
from ldprecover.recovery.unmixing.raised_sets import MOST_CELLS, Addition, LevelSearch
from ldprecover.reports.tally import Tally
from ldprecover.types import FloatArray, Int64Array

_NO_SEARCH = (
    f"No set of items that reports share was searched: there are more than {MOST_CELLS:,} kinds of "
    "reports."
)
_NOT_NAMED = f"{ALIKE}: they do not tell which of these an attack raised."
_LEAST = 0.1  # least c0 in units of q: at most nine tenths of all reports are malicious
_IDENTIFIED = 0.5  # mean probability of a set's items, below which others could be in their place
_LEAST_ITEMS, _PAIR = 25, 2
_CLEAR = 4  # standard deviations above 0 beyond which an item is certainly held by some users


@dataclass(frozen=True, eq=False, kw_only=True)
class NoisyEstimates:
    """Unbiased frequencies `z` of the d items from `n` reports, and what filtering found.

    `sd` are the standard deviations of the noise of z, given what each user holds. `suspects` are
    the items that too many reports share, with the probability by these reports alone that they
    raised them; `dropped_raised` is false if the dropped reports do not tell which they raised,
    and `are_raised` if the others show no attack on them.
    `dropped` are the reports left out, `honest_kept` is the probability that an honest report
    passes, and `notes` are sentences on the filters. `additions` are what those that pass may have
    added to the named targets, or else to the suspects, by a histogram. `log_p` is ln p of the
    joint law of the reports' items, None where they were not read, and `malicious` the least number
    of malicious reports by it. `further` is what one more attack may have added, to all items and
    to each, where several were found. `undecided` is why nothing tells raised items from framed
    ones, if nothing does: then no report is dropped and no item is a suspect.
    """

    z: FloatArray
    sd: FloatArray
    n: int
    suspects: Mapping[int, float] = field(default_factory=dict)
    dropped_raised: bool = True
    are_raised: bool = True
    dropped: tuple[Dropped, ...] = ()
    honest_kept: float = 1.0
    notes: tuple[str, ...] = ()
    additions: tuple[Addition, ...] = ()
    log_p: float | None = None
    malicious: float = 0.0
    further: tuple[float, float] = (0.0, 0.0)
    undecided: str | None = None


def why_undecided(oracle: FrequencyOracle, sets: Sequence[Int64Array]) -> str | None:
    """Return why nothing tells raised items from framed ones in the sets that reports share."""
    if oracle.domain_size < _LEAST_ITEMS:
        return f"Among fewer than {_LEAST_ITEMS} items nothing tells raised ones from framed ones"
    if sets and max(items.size for items in sets) == _PAIR:
        pair = indices_named(np.sort(sets[0]).tolist())
        return f"Reports share {pair}, and of two nothing tells whether they are raised or framed"
    return None


def estimates_of_counts(oracle: FrequencyOracle, poisoned: FloatArray, n: int) -> NoisyEstimates:
    """Return the estimates of n unfiltered reports with their noise."""
    p, q = oracle.p, oracle.q
    c0 = q + (p - q) * float(np.median(poisoned))  # the median of C/n
    return NoisyEstimates(
        z=poisoned,
        sd=noise_sd(poisoned, n, p, q, c0, fixed_size=oracle.fixed_size is not None),
        n=n,
    )


def estimates_of_histogram(
    oracle: FrequencyOracle, tally: Tally, targets: tuple[int, ...] = ()
) -> NoisyEstimates:
    """Return the estimates without over-full cells, and the additions that the rest may have.

    A cell is one of the different reports. The `targets`, or else a set that the histogram shows,
    are the suspects. Raises ParameterError if all reports are dropped.
    """
    histogram = tally.summary
    cells, log_p = without_full_cells(oracle, histogram)
    filled, _ = cells.fit(histogram)
    dropped = int(histogram[cells.dropped].sum())
    n = tally.n - dropped
    if not n:
        raise ParameterError("all reports would be dropped, and nothing is left to estimate from")
    search, counts = LevelSearch(cells, histogram), tally.counts(oracle)
    best = search.best(counts)
    if best is not None:
        log_p = min(log_p, -best.evidence)
    log_p = min(math.log(2) + log_p, 0.0)
    undecided = why_undecided(oracle, [] if best is None else [best.items])
    if undecided is not None:
        every = estimates_of_counts(oracle, tally.frequencies(oracle), tally.n)
        return replace(every, log_p=log_p, undecided=undecided)
    suspects: dict[int, float] = {}
    if best is not None and not targets and best.probabilities.mean() > _IDENTIFIED:
        suspects = dict(zip(best.items.tolist(), best.probabilities.tolist(), strict=True))
    is_named = _are_named(suspects, counts - cells.sums.counts(filled))
    raised = targets or tuple(suspects)
    additions = tuple(search.additions_for(raised)) if len(raised) > 1 else ()
    if not targets and all(each.log_likelihood < THRESHOLDS.set_evidence for each in additions):
        additions = ()  # the other reports show no attack
        if not is_named:
            suspects = {}
    honest = float(filled.sum())
    z = cells.estimates(filled) / honest
    usual = oracle.q + (oracle.p - oracle.q) * float(np.median(z))
    sd = noise_sd(z, round(honest), oracle.p, oracle.q, usual) * rounded(np.sqrt(cells.inflation))
    notes = [_NO_SEARCH] if cells.sums.number > MOST_CELLS else []
    if cells.dropped.size and not suspects and not targets:
        notes.append(_NOT_NAMED)
    of_others = float(filled[cells.dropped].sum())
    description = f"the {cells.dropped.size:,} fullest kinds of reports, which too many users sent"
    return NoisyEstimates(
        z=z,
        sd=sd,
        n=n,
        suspects=suspects,
        dropped=(Dropped("frequent reports", description, dropped),) if cells.dropped.size else (),
        honest_kept=n / honest,
        additions=additions,
        log_p=log_p,
        malicious=max(dropped - of_others - 3 * math.sqrt(dropped + of_others), 0.0),
        notes=tuple(notes),
        dropped_raised=is_named,
        are_raised=bool(additions),
    )


def _are_named(suspects: Mapping[int, float], dropped: FloatArray) -> bool:
    """Return whether the `dropped` support of each item tells the suspects.

    Dropped reports name a set only if they support each of its items more than all others.
    """
    if not suspects or min(suspects.values()) <= _IDENTIFIED:
        return False
    is_suspect = np.isin(np.arange(dropped.size), list(suspects))
    return float(dropped[is_suspect].min()) > float(dropped[~is_suspect].max())


def noise_sd(
    z: FloatArray, n: int, p: float, q: float, c0: float, *, fixed_size: bool = False
) -> FloatArray:
    """Return the standard deviation of the noise in each of the d estimates z of n reports.

    It is that of the perturbation alone, given what each user holds. z was estimated with `p` and
    `q`. `c0` is the share of reports that support an item which hardly anybody holds; it is clipped
    to [q/10, q]. `fixed_size` says that every report supports the same number of items, so that the
    counts have a fixed sum. Deviations are rounded to powers of 1.1 times that of frequency 0.
    """
    d = z.size
    c0 = min(max(c0, _LEAST * q), q)
    r = d / (d - 1) if fixed_size else 1.0
    none = c0 * (1 - c0)
    base = math.sqrt(none * r / n) / (p - q)
    # V = [c0(1-c0) + z (p(1-p) - q(1-q))] r/n/(p-q)^2, z clipped into [0, 1]. What may be noise is
    # taken as 0: otherwise the noise of an estimate would depend on its own value.
    frequency = np.where(z > _CLEAR * base, np.minimum(z, 1.0), 0.0)
    variance = np.maximum(none + frequency * (p * (1 - p) - q * (1 - q)), _LEAST * none)
    return base * rounded(np.sqrt(variance / none))
