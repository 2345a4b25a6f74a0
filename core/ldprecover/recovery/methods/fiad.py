"""FIAD: drops reports that support sets of items which honest reports rarely support together."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ldprecover.errors import ParameterError
from ldprecover.items import indices_named, largest
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.contract import Method, Option, Recovery, RecoveryInputs
from ldprecover.recovery.methods.detection import drop
from ldprecover.reports.sample import Sample, combinations
from ldprecover.reports.source import ReportSource
from ldprecover.types import BoolArray, Int64Array, Reports

_ITEMS = 24  # items with the highest estimates, which are searched: an attack raises its targets
_GROUP = 12  # maximum items of a group: all its 2^12 sets are tested
_SMALLEST = 3  # minimum items of a group: a pair would drop a ninth of the honest reports
_PAIR = 6.0  # standard errors by which a pair must be supported too often to be linked
_ROUNDS = 6  # maximum groups, searched one after the other


@dataclass(frozen=True, eq=False)
class Group:
    """A group of items and its abnormal sets, as bit masks: bit i stands for items[i].

    Element m of `taken`, of 2^|items|, says whether the items of bit mask m include an abnormal
    set.
    """

    items: Int64Array
    masks: Int64Array
    taken: BoolArray

    @property
    def involved(self) -> Int64Array:
        """The items of all abnormal sets."""
        mask = np.bitwise_or.reduce(self.masks)
        return self.items[mask >> np.arange(self.items.size) & 1 == 1]


def abnormal_itemsets(
    source: ReportSource, items: Int64Array, *, least: int, rate: float
) -> tuple[Group, ...]:
    """Return the groups of items with abnormal sets. Two passes for each group, and one more.

    A group has 3 to 12 items whose pairs are supported together too often. All its sets of at least
    `least` items are tested, larger sets first; of a smaller group the whole is tested. A set is
    abnormal if more of the reports that are not flagged yet support it than
    `JointSupport.threshold` allows for honest ones. The next group is searched among the other
    reports. Mining all sets of all items is exponential; malicious reports that are numerous enough
    to move estimates show in the pairs of the items they raise.
    """
    groups: tuple[Group, ...] = ()
    for _ in range(_ROUNDS):
        members = _linked(source.total(partial(_pairs, items=items, groups=groups)))
        if members.size < min(least, _SMALLEST):
            break
        counts = source.total(partial(_combination_counts, items=items[members], groups=groups))
        # n is known since the first pass.
        group = _tested(
            source.oracle, items[members], counts, source.n or 0, min(least, members.size), rate
        )
        if not group.masks.size:
            break
        groups += (group,)
    return groups


def _tested(
    oracle: FrequencyOracle, items: Int64Array, counts: Int64Array, n: int, least: int, rate: float
) -> Group:
    """Return the group of the items, from the number of unflagged reports of each combination."""
    joint_support = oracle.laws.joint_support
    assert joint_support is not None  # else `_unfit` has said why not
    abnormal: list[int] = []
    masks = np.arange(counts.size)
    sizes = np.bitwise_count(masks)
    taken = np.zeros(counts.size, np.bool_)
    for z in range(items.size, least - 1, -1):
        support = _supersets(np.where(taken, 0, counts))
        for mask in masks[(sizes == z) & (support >= joint_support.threshold(n, z, rate))]:
            taken |= masks & mask == mask
            abnormal.append(mask)
    return Group(items, np.array(abnormal, np.int64), taken)


def _hold_abnormal(
    oracle: FrequencyOracle, reports: Reports, *, groups: Sequence[Group]
) -> BoolArray:
    """Return which reports support an abnormal set."""
    bad = np.zeros(len(reports), np.bool_)
    for group in groups:
        bad |= group.taken[combinations(oracle.supports(reports, group.items))]
    return bad


def _unflagged(sample: Sample, groups: Sequence[Group]) -> Sample:
    """Return the reports that support no abnormal set."""
    return sample[~_hold_abnormal(sample.oracle, sample.reports, groups=groups)]


def _pairs(sample: Sample, *, items: Int64Array, groups: Sequence[Group]) -> Int64Array:
    """Return the pair counts of the reports that support no abnormal set."""
    return _unflagged(sample, groups).pair_counts(items)


def _combination_counts(
    sample: Sample, *, items: Int64Array, groups: Sequence[Group]
) -> Int64Array:
    """Return how many unflagged reports support exactly each combination of the items."""
    unflagged = _unflagged(sample, groups)
    return unflagged.bincount(combinations(unflagged.supports(items)), 1 << items.size)


def _recover(inputs: RecoveryInputs) -> Recovery:
    """Return the estimate from the reports that support no abnormal itemset (Cao et al., USENIX
    Security 2021).
    """
    source = inputs.reports
    assert source is not None  # the contract asks for them
    items = np.sort(largest(inputs.poisoned, _ITEMS))
    least = min(
        int(inputs.request.options["least"]), items.size
    )  # with three items, the set of all three
    groups = abnormal_itemsets(
        source, items, least=least, rate=float(inputs.request.options["rate"])
    )
    if not source.n:
        raise ParameterError("fiad: there are no reports")
    limit = min(_GROUP, items.size)
    sets = f"Sets of {least}" if least == limit else f"Sets of {least} to {limit}"
    whole = ", and whole groups of three," if least > _SMALLEST else ""
    looked = f"{sets}{whole} of the {items.size} items with the highest estimates were looked at"
    if not groups:
        note = f"{looked}: none is supported by more reports than honest ones would."
    else:
        involved = np.unique(np.concatenate([group.involved for group in groups]))
        abnormal = sum(group.masks.size for group in groups)
        note = (
            f"{looked}: {abnormal} are abnormal, of {indices_named(involved.tolist())}. "
            "Reports that support one of them are taken as malicious."
        )
    return drop(inputs, partial(_hold_abnormal, groups=groups), [note])


def _linked(pairs: Int64Array) -> Int64Array:
    """Return up to 12 items, as positions, whose pairs are supported together too often."""
    n, together = int(pairs[-1, -1]), pairs[:-1, :-1]
    if n < 2:
        return np.empty(0, np.int64)
    share = np.diag(together) / n
    expected = np.outer(share, share)
    error = np.sqrt(expected * np.outer(1 - share, 1 - share) / n) + 1e-300
    excess = (together / n - expected) / error
    np.fill_diagonal(excess, 0)
    linked = excess >= _PAIR
    if not linked.any():
        return np.empty(0, np.int64)
    # The strongest pair, and the items most strongly linked to either of its two.
    first, second = np.unravel_index(int(excess.argmax()), excess.shape)
    strength = np.where(linked[first] | linked[second], excess[first] + excess[second], -np.inf)
    strength[[first, second]] = np.inf
    members = largest(strength, _GROUP)
    return np.sort(members[strength[members] > -np.inf])


def _supersets(counts: Int64Array) -> Int64Array:
    """Return, for each bit mask, the sum over the masks that contain it."""
    total = counts.copy()
    bit = 1
    while bit < total.size:
        pairs = total.reshape(-1, 2, bit)
        pairs[:, 0] += pairs[:, 1]
        bit <<= 1
    return total


def _unfit(oracle: FrequencyOracle) -> str | None:
    if oracle.traits.one_item:
        return (
            f"a {oracle.protocol} report supports one item, so no set of items is supported "
            "together"
        )
    if oracle.laws.joint_support is None:
        return f"how honest {oracle.protocol} reports support sets is not known"
    return None


METHOD = Method(
    name="fiad",
    summary="Drop reports that support sets of items too often supported together (Cao et al.)",
    uses={"reports"},
    recover=_recover,
    needs={"reports"},
    cost="O(nd) at most, two passes over the reports and two for each group of items found; "
    "memory O(d)",
    options=(
        Option(
            "rate",
            default=0.01,
            low=1e-12,
            high=0.5,
            meaning="Bound on the probability that honest reports make a set abnormal",
        ),
        Option(
            "least",
            default=4,
            low=2,
            high=_GROUP,
            meaning="Items of the smallest sets looked at; fewer where fewer items are linked",
        ),
    ),
    unfit=_unfit,
)
