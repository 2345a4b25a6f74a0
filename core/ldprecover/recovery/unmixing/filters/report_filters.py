"""What reports show that honest users would hardly send, and estimates from the others.

Nothing need be known about an attack. Known are the laws of honest reports, whatever their users
hold: how many items they support, how often two items together, and how many items of any set.
"""

import math
from dataclasses import replace
from functools import partial

import numpy as np

from ldprecover.distributions import log_choose
from ldprecover.errors import ParameterError
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.conclusions import Dropped
from ldprecover.recovery.unmixing.estimates import NoisyEstimates, noise_sd, why_undecided
from ldprecover.recovery.unmixing.evidence import log_p_of_set, log_p_of_sizes
from ldprecover.recovery.unmixing.filters.excess import excess_bins
from ldprecover.recovery.unmixing.filters.raised import RaisedSet, additions
from ldprecover.recovery.unmixing.filters.rules import (
    MOST_ITEMS,
    hits_of,
    other_items_laws,
    summary_and_sizes,
    tally_of_sizes,
)
from ldprecover.recovery.unmixing.filters.set_search import found_sets
from ldprecover.recovery.unmixing.least_share import least_number, least_of_set
from ldprecover.recovery.unmixing.prior import THRESHOLDS
from ldprecover.reports.source import ReportSource
from ldprecover.reports.tally import Tally
from ldprecover.types import BoolArray, Int64Array

_LEAST_GAP = 1e-9
_LEAST_RAISED = 0.25  # of the mean of a set, that a suspect has of what is added


def unfit(oracle: FrequencyOracle) -> str | None:
    """Return why reports of this protocol and number of items are not filtered, or None."""
    if oracle.fixed_size == 1:
        return "each is one item, and tells no more than its count"
    if oracle.laws.hits is None or oracle.laws.hits.other_items_law(1, True) is None:
        return (
            f"how many of several items an honest {oracle.protocol} report supports is not known, "
            "or tells nothing"
        )
    return None


def filter_reports(source: ReportSource, targets: tuple[int, ...] = ()) -> NoisyEstimates:
    """Return unbiased estimates from the reports that pass the filters, and what was dropped.

    Dropped are reports of sizes that are too frequent, unless reports certainly raise a set of
    items. With the estimates come what malicious reports may have added to the `targets`, or else
    to the sets that they share, up to eight. Two passes over clean reports, at most four; memory
    does not grow with their number. They must be of an oracle that is not `unfit`.

    None is dropped if the others would not tell items apart. Raises ParameterError if there are
    no reports.
    """
    oracle, law = source.oracle, source.oracle.laws.size_law().probabilities()
    summary, sizes = np.split(source.total(summary_and_sizes), [-law.size])
    tally = Tally(summary, int(sizes.sum()))
    if not tally.n:
        raise ParameterError("there are no reports to filter")
    z = tally.frequencies(oracle)
    sets, log_p = found_sets(source, z, tally.n)
    tables = hits_of(source, sets)
    if sets:
        holders, price = np.maximum(z[sets[0]], 0).sum(), log_choose(z.size, sets[0].size)
        log_p = float(log_p_of_set(oracle, holders, tables[0][:, 0], price=price))
    malicious = max([0.0, *(least_of_set(oracle, each[:, 0]) for each in tables)])
    if oracle.fixed_size is None:
        log_p = min(log_p, log_p_of_sizes(sizes, law))
        malicious = max(malicious, least_number(law[None], sizes))
    undecided, raising = why_undecided(oracle, sets), list[tuple[Int64Array, RaisedSet]]()
    if undecided is None:
        fits = [RaisedSet.of(oracle, table) for table in tables]
        # Reports that raise one set may leave others looking concealed.
        pairs = list(zip(sets, fits, strict=True))
        raising = pairs[:1] + [pair for pair in pairs[1:] if pair[1].is_certain]
    certain = [(items, raised) for items, raised in raising if raised.is_certain]
    if certain or undecided is not None:
        estimates = unbiased_by_sizes(oracle, tally, np.ones(law.size, np.bool_))
    else:
        estimates = _by_sizes(source, tally, sizes)
    suspects = {
        item: float(raised.is_certain and share > _LEAST_RAISED / items.size)
        for items, raised in raising
        for item, share in zip(items.tolist(), raised.shares.tolist(), strict=True)
    }
    further = (0.0, 0.0)
    if certain and len(raising) > 1:
        total, t = min((raised.fits[0].raised, items.size) for items, raised in certain)
        further = total, total / t
    if targets and undecided is None:
        raising, named = [], [np.array(targets)]
        if len(targets) <= min(MOST_ITEMS, oracle.domain_size // 2):
            raising = [(named[0], RaisedSet.of(oracle, *hits_of(source, named)))]
    return replace(
        estimates,
        suspects=dict(sorted(suspects.items())),
        additions=tuple(additions(oracle, estimates, raising)),
        log_p=min(math.log(3) + log_p, 0.0),  # of sizes, pairs and all numbers of items
        malicious=malicious,
        further=further,
        undecided=undecided or estimates.undecided,
    )


def law_of_sizes(oracle: FrequencyOracle, sizes: BoolArray) -> tuple[float, float, float]:
    """Return the probability that an honest report has a size k with `sizes[k]`, and the p and q of
    such reports.
    """
    law, d = oracle.laws.size_law().probabilities(), oracle.domain_size
    share = float(law[sizes].sum())
    # The sizes of reports that support their user's item.
    own = np.append(0.0, other_items_laws(oracle, d - 1)[0])
    p = oracle.p * float(own[sizes].sum()) / share
    return share, p, (float(np.flatnonzero(sizes) @ law[sizes]) / share - p) / (d - 1)


def unbiased_by_sizes(oracle: FrequencyOracle, tally: Tally, sizes: BoolArray) -> NoisyEstimates:
    """Return unbiased estimates from the tally of the reports of the sizes k with `sizes[k]`."""
    share, p, q = law_of_sizes(oracle, sizes)
    rates = tally.counts(oracle) / tally.n
    z = (rates - q) / (p - q)
    sd = noise_sd(z, tally.n, p, q, float(np.median(rates)))
    return NoisyEstimates(z=z, sd=sd, n=tally.n, honest_kept=share)


def _by_sizes(source: ReportSource, tally: Tally, sizes: Int64Array) -> NoisyEstimates:
    """Return the estimates without the reports of sizes that are too frequent."""
    oracle, law = source.oracle, source.oracle.laws.size_law().probabilities()
    bad = excess_bins(sizes, law[None], THRESHOLDS.size_excess)
    every = unbiased_by_sizes(oracle, tally, np.ones(law.size, np.bool_))
    if not bad.any() or law[bad].sum() > THRESHOLDS.honest_loss:
        return every
    removed = source.total(partial(tally_of_sizes, sizes=bad))
    _, p, q = law_of_sizes(oracle, ~bad)
    # Reports of no item or all tell nothing: p = q but for rounding.
    if removed.n == tally.n or p - q < _LEAST_GAP:
        return replace(every, undecided="Nearly all reports have sizes that are too frequent")
    text = f"reports whose number of supported items is {_numbers_as_text(bad & (sizes > 0))}"
    dropped = Dropped("frequent sizes", f"{text}, which too many do", removed.n)
    return replace(unbiased_by_sizes(oracle, tally - removed, ~bad), dropped=(dropped,))


def _numbers_as_text(chosen: BoolArray) -> str:
    """Return the positions that are set as text, such as "1, 3"."""
    return ", ".join(map(str, np.flatnonzero(chosen).tolist()))
