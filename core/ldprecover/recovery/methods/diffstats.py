"""Diffstats: drop reports of suspicious sizes, so that the sizes of the rest follow the law of
honest reports.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from ldprecover.items import items_in_words
from ldprecover.laws.distributions import chi_squared_normal
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.contract import Method, Recovery, RecoveryInputs, indices_named
from ldprecover.recovery.methods.detection import drop
from ldprecover.recovery.reports import combinations, size_counts
from ldprecover.types import BoolArray, FloatArray, Int64Array, Reports

_THRESHOLDS = 10  # candidate thresholds: the largest differences
_ITEMS = 6  # items of which a removed report supports one
# normal quantile of the chi-squared test that lets it drop anything: one clean round in 1e6
_ALARM = 4.75
# of honest reports: what is taken of more of them tells a popular item, not sizes too frequent
_USUAL = 0.5
_PASSED = 2.0  # normal quantile below which the sizes left are those of honest reports
_EXPECTED = 5.0  # reports that a cell of the chi-squared test must be expected to hold


def _recover(inputs: RecoveryInputs) -> Recovery:
    """Return the estimate from what Diffstats keeps (Li et al., CCS 2025).

    Candidates are the sizes whose shares differ most from theory; among the reports of such sizes
    the six most supported items; and every combination of these. Removed are the reports of those
    sizes that support an item of the combination. Of all removals that leave the sizes as honest
    reports have them, by chi-squared, the smallest is taken.

    Theory here is the exact law, and a removal is expected to take the honest reports along that
    support one of the items too. Nothing is dropped where the sizes of all reports pass the test,
    nor where no removal does: the reports then deviate in a way that this method does not see
    through, and what it took would be honest for the most part.
    """
    oracle, source = inputs.oracle, inputs.reports
    assert source is not None  # the contract asks for them
    law = oracle.laws.size_law().probabilities()
    observed = source.total(size_counts)
    n = int(observed.sum())
    score, cells = _chi_squared(observed, np.ones(law.size), law)
    if chi_squared_normal(score, max(cells - 1, 1)) < _ALARM:
        note = (
            f"The sizes of the {n} reports follow the law of honest reports (chi-squared "
            f"{score:.4g}, {cells} cells)."
        )
        return drop(METHOD.name, inputs, _nobody(law.size), [note])

    difference = np.abs(observed / n - law)
    difference[observed == 0] = 0
    ranked = np.argsort(-difference, kind="stable")[: _THRESHOLDS - 1]
    best = _Removal(math.inf, n, score, ranked[:0], ranked[:0])
    by_size = source.total(partial(_supports_by_size, sizes=ranked)).cumsum(axis=0)
    items_of = np.sort(np.argsort(-by_size, axis=1, kind="stable")[:, :_ITEMS], axis=1)
    patterns_of = source.total(partial(_patterns, sizes=ranked, items_of=items_of))
    for flagged, items, patterns in zip(
        range(1, ranked.size + 1), items_of, patterns_of, strict=True
    ):
        sizes = ranked[:flagged]
        if law[sizes].sum() > _USUAL:
            break
        for chosen in range(1, 1 << items.size):
            number = chosen.bit_count()
            removed = patterns[:flagged, (np.arange(patterns.shape[1]) & chosen) != 0].sum(axis=1)
            left, share = observed.astype(np.float64), np.ones(law.size)
            left[sizes] -= removed
            share[sizes] = _supports_none(law.size - 1, sizes, number)
            tried, of = _chi_squared(left, share, law)
            failed = max(chi_squared_normal(tried, max(of - 1, 1)) - _PASSED, 0.0)
            picked = items[(chosen >> np.arange(items.size) & 1) != 0]
            best = min(
                best,
                _Removal(failed, int(removed.sum()), tried, sizes, picked),
                key=lambda r: r[:2],
            )

    if best.failed:
        note = (
            f"The sizes of the {n} reports do not follow the law of honest reports (chi-squared "
            f"{score:.4g}, {cells} "
            "cells), and no removal of sizes and items mends that, so nothing is dropped."
        )
        return drop(METHOD.name, inputs, _nobody(law.size), [note])
    flagged_sizes = np.zeros(law.size, np.bool_)
    flagged_sizes[best.sizes] = True
    note = (
        f"Reports that support {', '.join(map(str, np.sort(best.sizes)))} items, "
        f"{'one of ' if best.items.size > 1 else ''}{indices_named(best.items)} among them, are "
        "taken as malicious: "
        f"it brings chi-squared from {score:.4g} to {best.score:.4g} over {cells} sizes. Honest "
        "reports like these "
        "go too, which lowers those items."
    )
    return drop(METHOD.name, inputs, _Flagged(flagged_sizes, best.items), [note])


class _Removal(NamedTuple):
    """By how much a removal fails the test (0 if it passes), how many reports it takes,
    chi-squared, and of which.
    """

    failed: float
    removed: int
    score: float
    sizes: Int64Array
    items: Int64Array


@dataclass(frozen=True, eq=False)
class _Flagged:
    """Tells the reports of the sizes k where `sizes[k]` is set that support one of the items."""

    sizes: BoolArray
    items: Int64Array

    def __call__(self, oracle: FrequencyOracle, reports: Reports) -> BoolArray:
        bad: BoolArray = np.asarray(oracle.supported(reports, self.items).any(axis=1))
        bad[bad] = self.sizes[oracle.support_sizes(reports[bad])]
        return bad


def _nobody(sizes: int) -> _Flagged:
    return _Flagged(np.zeros(sizes, np.bool_), np.empty(0, np.int64))


def _supports_by_size(
    oracle: FrequencyOracle, reports: Reports, *, sizes: Int64Array
) -> Int64Array:
    """Return, for each of the sizes, the support counts of the reports of that size."""
    found = oracle.support_sizes(reports)
    some = np.isin(found, sizes)
    return oracle.subset_counts(reports[some], found[some] == sizes[:, None])


def _patterns(
    oracle: FrequencyOracle, reports: Reports, *, sizes: Int64Array, items_of: Int64Array
) -> Int64Array:
    """Return how many reports of each size support exactly each combination of some items, a bit
    mask.

    Row i of `items_of` has the items looked at among reports of the sizes 0..i: element (i, s,
    mask) of the result counts those of sizes[s].
    """
    row = np.full(oracle.domain_size + 1, -1)
    row[sizes] = np.arange(sizes.size)
    rows = row[oracle.support_sizes(reports)]
    reports, rows = reports[rows >= 0], rows[rows >= 0]
    every, columns = np.unique(items_of, return_inverse=True)
    bits = oracle.supported(reports, every)
    combined = 1 << items_of.shape[1]
    counts = np.zeros((len(items_of), sizes.size * combined), np.int64)
    for i, of in enumerate(columns.reshape(items_of.shape)):
        looked_at = rows <= i
        cells = rows[looked_at] * combined + combinations(bits[looked_at][:, of])
        counts[i] = np.bincount(cells, minlength=counts.shape[1])
    return counts.reshape(len(items_of), sizes.size, combined)


def _chi_squared(
    left: FloatArray | Int64Array, share: FloatArray, law: FloatArray
) -> tuple[float, int]:
    """Return chi-squared of the sizes left, of which honest ones leave a share, and the number of
    cells.
    """
    weights = law * share
    expected = weights * (left.sum() / weights.sum())
    enough = expected >= _EXPECTED
    cells = (
        np.append(left[enough], left[~enough].sum()),
        np.append(expected[enough], expected[~enough].sum()),
    )
    used = cells[1] > 0
    return float(((cells[0] - cells[1])[used] ** 2 / cells[1][used]).sum()), int(used.sum())


def _supports_none(d: int, sizes: Int64Array, number: int) -> FloatArray:
    """Return P(a report of that size supports none of so many items), its items drawn evenly."""
    none = np.ones(sizes.size)
    for i in range(number):
        none *= np.maximum(d - sizes - i, 0) / (d - i)
    return none


def _unfit(oracle: FrequencyOracle) -> str | None:
    if oracle.fixed_size is not None:
        return (
            f"every {oracle.protocol} report supports {items_in_words(oracle.fixed_size)}, so "
            "sizes tell nothing"
        )
    if (
        not oracle.traits.independent_bits
    ):  # of reports of one size, no set of items would be likelier than another
        return f"the sizes of honest {oracle.protocol} reports are not known to it"
    if oracle.domain_size < _ITEMS + 2:
        return f"it needs at least {_ITEMS + 2} items"
    return None


METHOD = Method(
    name="diffstats",
    summary="Drop reports whose sizes are too frequent and that share items (Li et al., CCS 2025)",
    uses=frozenset({"reports"}),
    recover=_recover,
    needs=frozenset({"reports"}),
    cost="O(nd), at most four passes over the reports; memory O(d)",
    unfit=_unfit,
)
