"""FIAD: drop reports that support sets of items which honest reports support together less often."""

import math

import numpy as np

from ldprecover._types import BoolArray, Int64Array, Reports
from ldprecover.errors import ParameterError
from ldprecover.protocols import GRR, OLH, OUE, FrequencyOracle
from ldprecover.recovery.base import Knowledge, Method, Option, Recovery, indices_named
from ldprecover.recovery.detection import drop
from ldprecover.recovery.reports import supported

__all__ = ["METHOD", "abnormal_itemsets", "threshold"]

_ITEMS = 24  # highest estimates that are looked at; an attack on others has not raised them
_GROUP = 12  # items of which all sets are tested: 2^12
_PAIR = 6.0  # standard errors by which pairs must be supported together too often for their items to be tested
_ROUNDS = 6  # groups that are looked for in turn


def threshold(oracle: FrequencyOracle, n: int, z: int, rate: float) -> int:
    """Return tau_z: so many of n reports supporting z items at once are too many to be honest (Cao et al.).

    OUE: an honest report supports z given items with probability at most w = pq^(z-1), and by
    Chebyshev tau = nw + sqrt(nw(1-w)/rate) is reached with probability `rate` at most. OLH: the
    smallest tau with P(Binomial(n, q^(z-1)) >= tau) <= rate.
    """
    if isinstance(oracle, OUE):
        w = oracle.p * oracle.q ** (z - 1)
        return math.ceil(n * w + math.sqrt(n * w * (1 - w) / rate))
    return _binomial_threshold(n, oracle.q ** (z - 1), rate)


def abnormal_itemsets(oracle: FrequencyOracle, patterns: Int64Array, *, least: int, rate: float) -> list[int]:
    """Return bit masks of abnormal sets of up to 24 items, given each report's combination of them as a bit mask.

    A group of up to 12 items is found whose pairs are supported together too often, and all its sets of
    at least `least` items are tested, larger ones first: abnormal are those that at least tau_z
    reports support which no abnormal set found before takes. Then the next group, among the
    reports left. Mining all sets of all items is exponential; a group of malicious reports large
    enough to move estimates shows in the pairs of the items it raises.
    """
    n = patterns.size
    values, counts = np.unique(patterns, return_counts=True)
    found: list[int] = []
    for _ in range(_ROUNDS):
        group = _group(values, counts)
        if group.size < least:
            break
        before = len(found)
        # A report's combination of the group's items, as a number below 2^|group|.
        local = (values[:, None] >> group & 1) @ (1 << np.arange(group.size))
        left = np.bincount(local, weights=counts, minlength=1 << group.size).astype(np.int64)
        masks = np.arange(1 << group.size)
        sizes = np.bitwise_count(masks)
        for z in range(group.size, least - 1, -1):
            tau = threshold(oracle, n, z, rate)
            support = _supersets(left)
            taken = masks[(sizes == z) & (support >= tau)]
            for mask in taken:
                left[masks & mask == mask] = 0
            found += [int((1 << group[mask >> np.arange(group.size) & 1 == 1]).sum()) for mask in taken]
        if len(found) == before:
            break
        kept = left[local] > 0
        values, counts = values[kept], counts[kept]
    return found


def _recover(knowledge: Knowledge) -> Recovery:
    """Return the estimate from the reports that support no abnormal itemset (Cao et al., USENIX Security 2021)."""
    oracle, source = knowledge.oracle, knowledge.reports
    assert source is not None  # the contract asks for them
    items = np.sort(np.argsort(-knowledge.poisoned, kind="stable")[:_ITEMS])
    bits = 1 << np.arange(items.size)
    of_block = [(supported(oracle, block, items) @ bits).astype(np.int32) for block in source.blocks()]
    patterns = np.concatenate([np.empty(0, np.int32), *of_block])
    if not patterns.size:
        raise ParameterError("fiad: there are no reports")
    least = int(knowledge.options["least"])
    masks = abnormal_itemsets(oracle, patterns, least=least, rate=knowledge.options["rate"])
    of_next = iter(of_block)

    def suspicious(_: Reports) -> BoolArray:
        pattern = next(of_next)
        bad = np.zeros(pattern.size, np.bool_)
        for mask in masks:
            bad |= pattern & mask == mask
        return bad

    looked = f"Sets of {least} to {_GROUP} of the {items.size} items with the highest estimates were looked at"
    if not masks:
        note = f"{looked}: none is supported by more reports than honest ones would."
    else:
        involved = items[np.bitwise_or.reduce(masks) >> np.arange(items.size) & 1 == 1]
        note = (
            f"{looked}: {len(masks)} are abnormal, of {indices_named(involved)}. "
            "Reports that support one of them are taken as malicious."
        )
    return drop(METHOD.name, knowledge, suspicious, [note])


def _group(values: Int64Array, counts: Int64Array) -> Int64Array:
    """Return the items, as bit positions, of the pairs supported together too often: at most 12, the most linked."""
    n = int(counts.sum())
    if n < 2:
        return np.empty(0, np.int64)
    width = int(values.max()).bit_length()
    supports = (values[:, None] >> np.arange(width) & 1).astype(np.float64)
    together = supports.T @ (supports * counts[:, None])
    share = np.diag(together) / n
    expected = np.outer(share, share)
    error = np.sqrt(expected * np.outer(1 - share, 1 - share) / n) + 1e-300
    excess = (together / n - expected) / error
    np.fill_diagonal(excess, 0)
    linked = excess >= _PAIR
    if not linked.any():
        return np.empty(0, np.int64)
    # The strongest pair, and those linked to either of the two; the most strongly linked of these stay.
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


def _binomial_threshold(n: int, w: float, rate: float) -> int:
    """Return the smallest t with P(Binomial(n, w) >= t) <= rate."""
    low = max(0, math.floor(n * w))
    high = min(n, math.ceil(n * w + 60 + 40 * math.sqrt(n * w)))  # beyond any rate from 1e-12
    k = np.arange(low, high + 1)
    factorial = np.array([math.lgamma(x + 1) + math.lgamma(n - x + 1) for x in k])
    log = math.lgamma(n + 1) - factorial + k * math.log(w) + (n - k) * math.log1p(-w)
    tail = np.cumsum(np.exp(log)[::-1])[::-1]
    within = np.flatnonzero(tail <= rate)
    return int(k[within[0]]) if within.size else n + 1


def _unfit(oracle: FrequencyOracle) -> str | None:
    if isinstance(oracle, GRR):
        return "a grr report supports one item, so no set of items is supported together"
    return None if isinstance(oracle, OUE | OLH) else f"how honest {oracle.protocol} reports support sets is not known"


METHOD = Method(
    name="fiad",
    summary="Drop reports that support sets of items too often supported together (Cao et al.)",
    uses=frozenset({"reports"}),
    recover=_recover,
    needs=frozenset({"reports"}),
    cost="O(nd), two passes over the reports; four bytes a report are held",
    options=(
        Option("rate", 0.01, 1e-12, 0.5, "Bound on the probability that honest reports make a set abnormal"),
        Option("least", 4, 2, _GROUP, "Items of the smallest sets looked at"),
    ),
    unfit=_unfit,
)
