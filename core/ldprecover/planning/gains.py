"""The largest gains of malicious users for several targets: exact laws for every protocol.

A gain is the expected rise of the sum of the estimates of r targets. In units of the share beta of
malicious users, for targets that nobody holds, it is

    sum_T (pi(t) - q)/(p - q) = (h - rq)/(p - q),

where pi(t) is the share of malicious reports that support t, and h = sum_T pi(t) the mean number of
targets that one of them supports (Cao, Jia and Gong, USENIX Security 2021). If genuine users hold a
share f_T of the targets, the gain is beta times (this - f_T).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ldprecover._checks import is_integer
from ldprecover.crafting.crafter import CRAFTED_LAW
from ldprecover.errors import ParameterError
from ldprecover.laws import required
from ldprecover.protocols import Aim, FrequencyOracle, coins_of, crafter_of

_COIN = 0.5  # the probability with which apa2 supports each target
_FEW_ITEMS = 10_000  # a law of honest sizes over them takes a millisecond


@dataclass(frozen=True)
class Gain:
    """The gain of one attack over the estimates of its targets together, in units of beta.

    `attack` is its name; `sends` describes the reports of a malicious user. `gain` is None if it is
    not computed, and `reason` says why.
    """

    attack: str
    sends: str
    gain: float | None
    reason: str | None = None


def gains(oracle: FrequencyOracle, targets: int, *, thorough: bool = False) -> tuple[Gain, ...]:
    """Return the gain of each attack on this number of targets that nobody holds.

    The gain of mga is that for the targets that suit the attacker best. mga-a and apa promote half
    of the targets in each report; apa2 tosses fair coins. Slow laws are computed only if
    `thorough`: those of reports of honest sizes over more than 10,000 items, and those of users who
    search for hash seeds of a target size, which take seconds. Raises ParameterError unless there
    is at least one target and one other item.
    """
    d, r = oracle.domain_size, targets
    if not is_integer(r, 1, d - 1):
        raise ParameterError(
            f"targets, a number of items, must be from 1 to {d - 1}, not {targets!r:.40}"
        )

    def subsets(aim: Aim) -> float:
        each = (r + 1) // 2
        if aim == "honest" and each > crafter_of(oracle).expected_size and oracle.fixed_size != 1:
            raise ParameterError(f"{each} targets do not fit into a report of an honest size")
        if oracle.hash_tests and not thorough:
            raise ParameterError(
                "the law of a search for seeds of a target size takes long to compute"
            )
        if aim == "honest":
            check_items()
        mean = crafter_of(oracle).expected_hits(each, aim=aim)
        hits, others = required(mean, oracle.protocol, CRAFTED_LAW)
        return hits + (r - each) * others / (d - each)

    def check_items() -> None:
        if d > _FEW_ITEMS and not thorough:
            raise ParameterError(
                "the law of honest sizes takes long to compute over this many items"
            )

    def coins() -> float:
        if oracle.fixed_size == 1:
            raise ParameterError("a report supports one item, and tosses no coins")
        if r * _COIN > coins_of(oracle).room:
            raise ParameterError(
                f"{r * _COIN:g} targets do not fit into a report of an honest size"
            )
        check_items()
        return float(coins_of(oracle).support(np.arange(r), _COIN)[:r].sum())

    def weighted(law: Callable[[np.ndarray], np.ndarray]) -> float:
        weights = np.zeros(d)
        weights[:r] = 1 / r
        return float(law(weights)[:r].sum())

    laws: tuple[tuple[str, str, Callable[[], float]], ...] = (
        ("mga", "reports that support as many targets as one can", lambda: _most_hits(oracle, r)),
        (
            "mga-a",
            "the same for half of the targets, another half in each report",
            lambda: subsets("balanced"),
        ),
        ("apa", "the same, in reports of honest sizes", lambda: subsets("honest")),
        ("apa2", "honest reports with a fair coin for each target", coins),
        (
            "mga, sampled",
            "a target, encoded and not perturbed",
            lambda: weighted(crafter_of(oracle).encoded_support),
        ),
        (
            "ria",
            "a lie: a target, perturbed honestly",
            lambda: weighted(oracle.laws.honest_support),
        ),
        ("rpa", "any report, at random", lambda: r * crafter_of(oracle).uniform_support),
    )
    return tuple(_gain(oracle, r, *each) for each in laws)


def _most_hits(oracle: FrequencyOracle, r: int) -> float:
    """Return the mean number of r targets that a crafted report supports.

    If crafted reports support as many of any r targets, these are any. If it depends on the
    targets, as with Hadamard response, or is not known, it is the maximum over targets.
    """
    hits = None if oracle.crafter is None else oracle.crafter.expected_hits(r)
    if hits is not None:
        return hits[0]
    return float(r if oracle.fixed_size is None else min(r, oracle.fixed_size))


def _of_hits(oracle: FrequencyOracle, r: int, hits: float) -> float:
    return (hits - r * oracle.q) / (oracle.p - oracle.q)


def _gain(
    oracle: FrequencyOracle, r: int, attack: str, sends: str, hits: Callable[[], float]
) -> Gain:
    try:
        value = _of_hits(oracle, r, hits())
    except ParameterError as error:
        return Gain(attack, sends, None, str(error))
    return Gain(attack, sends, value)
