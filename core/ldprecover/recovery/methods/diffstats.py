"""Diffstats: drops reports of suspicious sizes, so that the rest follow the honest law of sizes."""

from collections.abc import Iterator
from functools import lru_cache, partial
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from ldprecover.distributions import chi_squared_normal
from ldprecover.items import indices_named, items_in_words, largest
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.contract import Method, Recovery, RecoveryInputs
from ldprecover.recovery.methods.detection import drop
from ldprecover.reports.sample import Sample, combinations
from ldprecover.reports.source import ReportSource
from ldprecover.types import BoolArray, FloatArray, Int64Array, Reports

_THRESHOLDS = 10  # numbers of suspicious sizes that are tried, plus one
_ITEMS = 6  # items of which a removed report supports one: 2^6 - 1 combinations are tried
_ALARM = 4.75  # normal quantile that must be exceeded to drop anything: one clean round in 10^6
_USUAL = 0.5  # probability of sizes beyond which they are usual: an excess is a popular item
_PASSED = 2.0  # normal quantile below which the sizes of the rest pass as honest
_EXPECTED = 5.0  # reports that a cell of the chi-squared test must expect, the usual rule


def _recover(inputs: RecoveryInputs) -> Recovery:
    """Return the estimate from the reports that Diffstats keeps (Li et al., CCS 2025).

    Candidates are the sizes whose shares differ most from theory, the six items that reports of
    such sizes support most, and every combination of these items. A removal drops the reports of
    those sizes that support an item of the combination. Of all removals after which the sizes pass
    a chi-squared test against honest reports, the smallest is taken.

    Unlike in the paper, theory is the exact law, and a removal is expected to drop the honest
    reports that support one of the items too. Nothing is dropped if the sizes of all reports pass
    the test, nor if they pass after no removal: then the reports deviate in a way that this method
    does not see through, and it would drop mostly honest ones.
    """
    oracle, source = inputs.oracle, inputs.reports
    assert source is not None  # the contract requires them
    law = oracle.laws.size_law().probabilities()
    observed = source.total(Sample.size_counts)
    n = int(observed.sum())
    before = _chi_squared(observed, np.ones(law.size), law)
    sizes_in_words = f"chi-squared {before.score:.4g}, {before.cells} cells"
    dropped_sizes, dropped_items = np.zeros(law.size, np.bool_), np.empty(0, np.int64)
    if before.quantile < _ALARM:
        note = f"The sizes of the {n} reports follow the law of honest reports ({sizes_in_words})."
    elif (
        best := min(_removals(source, observed, law), key=itemgetter(0, 1), default=None)
    ) is None or best.failure:
        note = (
            f"The sizes of the {n} reports do not follow the law of honest reports "
            f"({sizes_in_words}), and no removal of sizes and items mends that, so nothing is "
            "dropped."
        )
    else:
        dropped_sizes[best.sizes], dropped_items = True, best.items
        note = (
            f"Reports that support {', '.join(map(str, np.sort(best.sizes)))} items, "
            f"{'one of ' if best.items.size > 1 else ''}{indices_named(best.items)} among them, "
            f"are taken as malicious: it brings chi-squared from {before.score:.4g} to "
            f"{best.score:.4g} over {before.cells} sizes. Honest reports like these go too, which "
            "lowers those items."
        )
    return drop(inputs, partial(_flagged, sizes=dropped_sizes, items=dropped_items), [note])


class _Test(NamedTuple):
    """A chi-squared statistic and its number of cells."""

    score: float
    cells: int

    @property
    def quantile(self) -> float:
        """The normal quantile of the statistic under the law of honest reports."""
        return chi_squared_normal(self.score, max(self.cells - 1, 1))


class _Removal(NamedTuple):
    """A removal of the reports of some sizes that support one of some items.

    `failure` is by how much the sizes of the rest fail the test, 0 if they pass; `removed` is the
    number of reports, `score` is chi-squared of the rest. The first two are the order of choice.
    """

    failure: float
    removed: int
    score: float
    sizes: Int64Array
    items: Int64Array


def _removals(source: ReportSource, observed: Int64Array, law: FloatArray) -> Iterator[_Removal]:
    """Yield the removal of each number of suspicious sizes and each combination of items."""
    difference = np.abs(observed / observed.sum() - law)
    difference[observed == 0] = 0
    ranked = largest(difference, _THRESHOLDS - 1)
    by_size = source.total(partial(_supports_by_size, sizes=ranked)).cumsum(axis=0)
    items_of = np.sort(np.argsort(-by_size, axis=1, kind="stable")[:, :_ITEMS], axis=1)
    patterns_of = source.total(partial(_patterns, sizes=ranked, items_of=items_of))
    for number, (items, patterns) in enumerate(zip(items_of, patterns_of, strict=True), 1):
        sizes = ranked[:number]
        if law[sizes].sum() > _USUAL:
            return
        for combination in range(1, 1 << items.size):
            shares_one = (np.arange(1 << items.size) & combination) != 0
            removed = patterns[:number, shares_one].sum(axis=1)
            rest, honest_share = observed.astype(np.float64), np.ones(law.size)
            rest[sizes] -= removed
            honest_share[sizes] = _supports_none(law.size - 1, sizes, combination.bit_count())
            test = _chi_squared(rest, honest_share, law)
            failure = max(test.quantile - _PASSED, 0.0)
            chosen = items[(combination >> np.arange(items.size) & 1) != 0]
            yield _Removal(failure, int(removed.sum()), test.score, sizes, chosen)


def _flagged(
    oracle: FrequencyOracle, reports: Reports, *, sizes: BoolArray, items: Int64Array
) -> BoolArray:
    """Return which reports are of a size k with `sizes[k]` set and support one of the items."""
    bad: BoolArray = np.asarray(oracle.supports(reports, items).any(axis=1))
    bad[bad] = sizes[oracle.support_sizes(reports[bad])]
    return bad


def _supports_by_size(sample: Sample, *, sizes: Int64Array) -> Int64Array:
    """Return, for each of the sizes, the support counts of the reports of that size."""
    size_of = sample.sizes()
    some = np.isin(size_of, sizes)
    return sample[some].subset_counts(size_of[some] == sizes[:, None])


def _patterns(sample: Sample, *, sizes: Int64Array, items_of: Int64Array) -> Int64Array:
    """Return how many reports of each size support exactly each combination of some items.

    Row i of `items_of` has the items for the first i + 1 sizes. Element (i, s, mask) of the result
    counts the reports of sizes[s] that support exactly the items of row i whose bit is set.
    """
    row = np.full(sample.oracle.domain_size + 1, -1)
    row[sizes] = np.arange(sizes.size)
    rows = row[sample.sizes()]
    sample, rows = sample[rows >= 0], rows[rows >= 0]
    every, columns = np.unique(items_of, return_inverse=True)
    bits = sample.supports(every)
    combined = 1 << items_of.shape[1]
    counts = np.zeros((len(items_of), sizes.size * combined), np.int64)
    for i, row_columns in enumerate(columns.reshape(items_of.shape)):
        some = rows <= i
        cells = rows[some] * combined + combinations(bits[some][:, row_columns])
        counts[i] = sample[some].bincount(cells, counts.shape[1])
    return counts.reshape(len(items_of), sizes.size, combined)


def _chi_squared(rest: FloatArray | Int64Array, honest_share: FloatArray, law: FloatArray) -> _Test:
    """Return the test of the sizes of the rest, of which a share of the honest reports remains."""
    weights = law * honest_share
    expected = weights * (rest.sum() / weights.sum())
    enough = expected >= _EXPECTED
    cells = np.append(rest[enough], rest[~enough].sum())
    means = np.append(expected[enough], expected[~enough].sum())
    used = means > 0
    return _Test(float(((cells - means)[used] ** 2 / means[used]).sum()), int(used.sum()))


def _supports_none(d: int, sizes: Int64Array, number: int) -> FloatArray:
    """Return P(a report of each size supports none of `number` items), its items drawn evenly."""
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
    if oracle.laws.report_sums is not None:
        return _usual_sizes(oracle)
    if (
        not oracle.traits.independent_bits
    ):  # of reports of one size, no set of items would be likelier than another
        return f"the sizes of honest {oracle.protocol} reports depend on the items of their users"
    if oracle.domain_size < _ITEMS + 2:
        return f"it needs at least {_ITEMS + 2} items"
    return None


@lru_cache(maxsize=256)
def _usual_sizes(oracle: FrequencyOracle) -> str:
    """Return the reason for a protocol of few reports: most of them have a usual size.

    A column of HR or a seed of LLH whose lowest digit is not 0 splits each g consecutive items
    evenly, g = 2 for HR. So 1 - q of all reports, at least half, support (d - 1)q to dq items,
    rounded, and malicious users find such reports for nearly any targets.
    """
    reports = np.arange(oracle.summary_size).astype(oracle.wire.dtype)
    numbers = np.bincount(oracle.support_sizes(reports), minlength=oracle.domain_size + 1)
    pairs = numbers[:-1] + numbers[1:]
    size = int(pairs.argmax())
    return (
        f"{pairs[size]:,} of the {reports.size:,} different {oracle.protocol} reports support "
        f"{size} or {size + 1} items, so a crafted one need not stand out by its size"
    )


METHOD = Method(
    name="diffstats",
    summary="Drop reports whose sizes are too frequent and that share items (Li et al., CCS 2025)",
    uses={"reports"},
    recover=_recover,
    needs={"reports"},
    cost="O(nd), at most four passes over the reports; memory O(d)",
    unfit=_unfit,
)
