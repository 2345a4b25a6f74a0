"""Screens: drop the reports that honest users would not have sent, and estimate from the rest
without bias.

Nothing is known of an attack. What is known is what honest reports are like, whatever their users
hold: how many items they support, how often two items together, and how many of any set.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ldprecover.counting.tally import Tally
from ldprecover.errors import ParameterError
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.conclusions import Dropped
from ldprecover.recovery.contract import indices_named
from ldprecover.recovery.reports import ReportSource
from ldprecover.recovery.unmixing.estimates import Measured, measured_of_counts
from ldprecover.recovery.unmixing.filters.debias import Rest, unbiased
from ldprecover.recovery.unmixing.filters.excess import excess_bins
from ldprecover.recovery.unmixing.filters.rules import Kept, lost, of_other_sizes, sized_tally
from ldprecover.recovery.unmixing.filters.set_search import SharedSets, shared_sets
from ldprecover.recovery.unmixing.unmixer import LEAST_ITEMS
from ldprecover.types import BoolArray, FloatArray, Int64Array

_NONE = (
    1e-6  # honest reports of a size, expected at the most, that make each such report impossible
)
# probability of a size up to which it may be far too frequent: beyond 20 + 10 times what is
# expected
_RARE = 1e-4
_SIZES_SHARE = 0.1  # of a size that must be above the honest fit
_HARDLY, _TOO_OFTEN = "which honest ones hardly ever do", "which too many do"
_HONEST = 0.5  # probability of the dropped sizes that is too much to lose


def unfit(oracle: FrequencyOracle) -> str | None:
    """Return why reports of this protocol and number of items are not screened; None where they
    are.
    """
    if not oracle.traits.independent_bits:
        return (
            f"the items that an honest {oracle.protocol} report supports are not independent of "
            "each other, so "
            "what is left after a screen would be biased"
        )
    if oracle.domain_size < LEAST_ITEMS:
        return f"there are fewer than {LEAST_ITEMS} items"
    return None


@dataclass(frozen=True, eq=False)
class _Sizes:
    """The sizes that are kept, the rule that keeps reports of these alone, its tally, and what was
    dropped.
    """

    sizes: BoolArray
    kept: Kept
    tally: Tally
    dropped: tuple[Dropped, ...] = ()


def screen(source: ReportSource) -> Measured:
    """Return unbiased estimates from the reports that pass the screens, and what these found.

    In turn: reports of sizes that honest ones hardly ever have; sets of items that too many reports
    share, up to three; where there is no such set, sizes that are too frequent. Five passes over
    clean reports, at most 23; memory does not grow with them. Where `unfit` has a reason, all
    reports are kept.

    Raises ParameterError where there is no report, or none is left.
    """
    oracle = source.oracle
    reason = unfit(oracle)
    if reason is not None:
        tally = source.tally()
        if not tally.n:
            raise ParameterError("there are no reports to screen")
        measured = measured_of_counts(
            oracle, oracle.estimate(tally.counts(oracle), tally.n), tally.n
        )
        return Measured(
            measured.z, measured.sd, measured.n, notes=(f"Reports were not screened: {reason}.",)
        )

    first = source.total(sized_tally)
    if not first.tally.n:
        raise ParameterError("there are no reports to screen")
    law = oracle.laws.size_law().probabilities()
    observed = first.sizes
    every = _Sizes(np.ones(law.size, np.bool_), Kept(), first.tally)
    bad = _impossible(observed, law)
    possible = _without(source, every, bad, observed, "impossible sizes", _HARDLY, held=True)
    sets = shared_sets(source, possible.kept, possible.tally)
    if not sets.kept.sets:
        return _usual(source, possible, observed, sets.suspects)
    rest = _rest(oracle, possible.sizes, sets.tally, sets)
    if rest.trusted:
        dropped = (*possible.dropped, *_sets_in_words(sets))
        shared = tuple(sorted({int(item) for each in sets.kept.sets for item in each.items}))
        return Measured(
            rest.z, rest.sd, sets.tally.n, sets.suspects, shared, dropped, rest.honest_kept
        )
    note = (
        f"Many reports share {indices_named(sets.suspects)}, but then most of the users would hold "
        "one of these, so "
        "no report was dropped for it."
    )
    return replace(_usual(source, possible, observed), notes=(note,))


def _usual(
    source: ReportSource, possible: _Sizes, observed: Int64Array, suspects: tuple[int, ...] = ()
) -> Measured:
    """Return the estimates from the reports of possible sizes that are not too frequent."""
    oracle = source.oracle
    law = oracle.laws.size_law().probabilities()
    bad = _too_frequent(observed, law, possible.sizes)
    usual = _without(source, possible, bad, observed, "frequent sizes", _TOO_OFTEN)
    rest = _rest(source.oracle, usual.sizes, usual.tally)
    return Measured(rest.z, rest.sd, usual.tally.n, suspects, (), usual.dropped, rest.honest_kept)


def _impossible(sizes: Int64Array, law: FloatArray) -> BoolArray:
    """Return the sizes that no honest report is expected to have, and rare ones that are far too
    frequent.
    """
    expected = sizes.sum() * law
    return np.asarray((expected <= _NONE) | ((law <= _RARE) & (sizes > 20 + 10 * expected)))


def _too_frequent(sizes: Int64Array, law: FloatArray, kept: BoolArray) -> BoolArray:
    """Return which of the sizes kept are too frequent; none where too many honest reports would go
    with them.
    """
    bins = np.zeros(law.size, np.bool_)
    bins[kept] = excess_bins(sizes[kept], law[None, kept], _SIZES_SHARE).bins
    return bins if law[bins].sum() <= _HONEST else np.zeros(law.size, np.bool_)


def _without(
    source: ReportSource,
    before: _Sizes,
    bad: BoolArray,
    sizes: Int64Array,
    screen: str,
    why: str,
    *,
    held: bool = False,
) -> _Sizes:
    """Return what is kept without the reports of bad sizes: one pass, if there is any.

    These are `held` where more passes come, and all reports are kept before.
    """
    left = before.sizes & ~bad
    gone = before.sizes & bad & (sizes > 0)
    if not gone.any():
        return _Sizes(left, before.kept, before.tally, before.dropped)
    if held:
        found = source.total(partial(of_other_sizes, sizes=left))
        kept, taken = Kept(left, others=found.reports(source.oracle)), found.tally
    else:
        kept = Kept(left)
        taken = source.total(partial(lost, kept=replace(before.kept, others=None), rule=kept))
    what = f"reports whose number of supported items is {_numbers_in_words(gone)}, {why}"
    return _Sizes(
        left, kept, before.tally - taken, (*before.dropped, Dropped(screen, what, taken.n))
    )


def _rest(
    oracle: FrequencyOracle, sizes: BoolArray, tally: Tally, sets: SharedSets | None = None
) -> Rest:
    if not tally.n:
        raise ParameterError("all reports would be dropped, and nothing is left to estimate from")
    return unbiased(
        oracle, tally.counts(oracle), tally.n, sizes, () if sets is None else sets.kept.sets
    )


def _sets_in_words(sets: SharedSets) -> list[Dropped]:
    described = []
    for found, number in zip(sets.kept.sets, sets.dropped, strict=True):
        items = indices_named(np.sort(found.items).tolist())
        what = f"reports that support {_numbers_in_words(found.bins)} of {items}, {_TOO_OFTEN}"
        described.append(Dropped("shared items", what, number))
    return described


def _numbers_in_words(chosen: BoolArray) -> str:
    """Return the positions that are set, as in "1, 3 or 5 to 8"."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], chosen, [False]]).astype(np.int8)))
    runs = [
        str(a) if b == a + 1 else f"{a} to {b - 1}"
        for a, b in zip(edges[::2], edges[1::2], strict=True)
    ]
    return runs[0] if len(runs) == 1 else f"{', '.join(runs[:-1])} or {runs[-1]}"
