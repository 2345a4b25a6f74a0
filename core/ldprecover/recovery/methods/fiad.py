"""FIAD: drop reports that support sets of items which honest reports support together less
often.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ldprecover.errors import ParameterError
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.contract import Method, Option, Recovery, RecoveryInputs, indices_named
from ldprecover.recovery.methods.detection import drop
from ldprecover.recovery.reports import ReportSource, combinations, pair_counts
from ldprecover.types import BoolArray, Int64Array, Reports

_ITEMS = 24  # highest estimates that are looked at; an attack on others has not raised them
_GROUP = 12  # items of which all sets are tested: 2^12
# items of a group that is tested: a pair alone would take a ninth of the honest reports along
_SMALLEST = 3
# standard errors by which pairs must be supported together too often for their items to be tested
_PAIR = 6.0
_ROUNDS = 6  # groups that are looked for in turn


@dataclass(frozen=True, eq=False)
class Group:
    """Items whose sets were tested, and the abnormal sets among them, as bit masks: bit i is
    items[i].

    Element m of `taken`, of 2^|items|, tells whether the combination of items with bit mask m holds
    an abnormal set.
    """

    items: Int64Array
    masks: Int64Array
    taken: BoolArray

    @property
    def itemsets(self) -> list[tuple[int, ...]]:
        """The abnormal sets as tuples of items, largest first."""
        return [tuple(self._of(mask).tolist()) for mask in self.masks]

    @property
    def involved(self) -> Int64Array:
        """The items of all abnormal sets."""
        return self._of(np.bitwise_or.reduce(self.masks))

    def _of(self, mask: np.int64) -> Int64Array:
        return np.asarray(self.items[mask >> np.arange(self.items.size) & 1 == 1])


def abnormal_itemsets(
    source: ReportSource, items: Int64Array, *, least: int, rate: float
) -> list[Group]:
    """Return the groups of the items that hold abnormal sets, and these. Two passes for each, and
    one.

    A group of 3 to 12 items is found whose pairs are supported together too often, and all its sets
    of at least `least` items are tested, or the whole group where it has fewer, larger sets first:
    abnormal are those that more reports support, and no abnormal set found before takes, than
    `JointSupport.threshold` leaves to honest ones. Then the next group, among the
    reports left. Mining all sets of all items is exponential; a group of malicious reports large
    enough to move estimates shows in the pairs of the items it raises.
    """
    found: list[Group] = []
    for _ in range(_ROUNDS):
        members = _linked(source.total(partial(_pairs, items=items, found=tuple(found))))
        if members.size < min(least, _SMALLEST):
            break
        left = source.total(partial(_combinations_left, items=items[members], found=tuple(found)))
        # Since the first pass, n is known.
        group = _tested(
            source.oracle, items[members], left, source.n or 0, min(least, members.size), rate
        )
        if not group.masks.size:
            break
        found.append(group)
    return found


def _tested(
    oracle: FrequencyOracle, items: Int64Array, left: Int64Array, n: int, least: int, rate: float
) -> Group:
    """Return the group of the items, given how many of n reports are left of each combination of
    them.
    """
    joint_support = oracle.laws.joint_support
    assert joint_support is not None  # else `_unfit` has said why not
    abnormal: list[int] = []
    masks = np.arange(left.size)
    sizes = np.bitwise_count(masks)
    taken = np.zeros(left.size, np.bool_)
    for z in range(items.size, least - 1, -1):
        support = _supersets(np.where(taken, 0, left))
        for mask in masks[(sizes == z) & (support >= joint_support.threshold(n, z, rate))]:
            taken |= masks & mask == mask
            abnormal.append(mask)
    return Group(items, np.array(abnormal, np.int64), taken)


def _hold_abnormal(
    oracle: FrequencyOracle, reports: Reports, *, found: Sequence[Group]
) -> BoolArray:
    """Return which reports support an abnormal set."""
    bad = np.zeros(len(reports), np.bool_)
    for group in found:
        bad |= group.taken[combinations(oracle.supported(reports, group.items))]
    return bad


def _left(oracle: FrequencyOracle, reports: Reports, found: Sequence[Group]) -> Reports:
    """Return the reports that support no abnormal set."""
    return reports[~_hold_abnormal(oracle, reports, found=found)] if found else reports


def _pairs(
    oracle: FrequencyOracle, reports: Reports, *, items: Int64Array, found: Sequence[Group]
) -> Int64Array:
    """Return the pair counts of the reports left."""
    return pair_counts(oracle, _left(oracle, reports, found), items)


def _combinations_left(
    oracle: FrequencyOracle, reports: Reports, *, items: Int64Array, found: Sequence[Group]
) -> Int64Array:
    """Return how many of the reports left support exactly each combination of the items."""
    left = _left(oracle, reports, found)
    return np.bincount(combinations(oracle.supported(left, items)), minlength=1 << items.size)


def _recover(inputs: RecoveryInputs) -> Recovery:
    """Return the estimate from the reports that support no abnormal itemset (Cao et al., USENIX
    Security 2021).
    """
    source = inputs.reports
    assert source is not None  # the contract asks for them
    items = np.sort(np.argsort(-inputs.poisoned, kind="stable")[:_ITEMS])
    least = min(
        int(inputs.request.options["least"]), items.size
    )  # with three items, the set of all three
    found = abnormal_itemsets(source, items, least=least, rate=inputs.request.options["rate"])
    if not source.n:
        raise ParameterError("fiad: there are no reports")
    most = min(_GROUP, items.size)
    sets = f"Sets of {least}" if least == most else f"Sets of {least} to {most}"
    whole = ", and whole groups of three," if least > _SMALLEST else ""
    looked = f"{sets}{whole} of the {items.size} items with the highest estimates were looked at"
    if not found:
        note = f"{looked}: none is supported by more reports than honest ones would."
    else:
        involved = np.unique(np.concatenate([group.involved for group in found]))
        abnormal = sum(group.masks.size for group in found)
        note = (
            f"{looked}: {abnormal} are abnormal, of {indices_named(involved.tolist())}. "
            "Reports that support one of them are taken as malicious."
        )
    return drop(METHOD.name, inputs, partial(_hold_abnormal, found=tuple(found)), [note])


def _linked(pairs: Int64Array) -> Int64Array:
    """Return the items, as positions, of the pairs supported together too often: at most 12, the
    most linked.
    """
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
    # The strongest pair, and those linked to either of the two; the most strongly linked of these
    # stay.
    first, second = np.unravel_index(int(excess.argmax()), excess.shape)
    strength = np.where(linked[first] | linked[second], excess[first] + excess[second], -np.inf)
    strength[[first, second]] = np.inf
    members = np.argsort(-strength, kind="stable")[:_GROUP]
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
    uses=frozenset({"reports"}),
    recover=_recover,
    needs=frozenset({"reports"}),
    cost="O(nd) at most, two passes over the reports and two for each group of items found; "
    "memory O(d)",
    options=(
        Option(
            "rate",
            0.01,
            1e-12,
            0.5,
            "Bound on the probability that honest reports make a set abnormal",
        ),
        Option(
            "least",
            4,
            2,
            _GROUP,
            "Items of the smallest sets looked at; fewer where fewer items are linked",
        ),
    ),
    unfit=_unfit,
)
