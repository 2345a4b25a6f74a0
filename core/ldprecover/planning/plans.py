"""What each protocol makes of a wish."""

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields
from statistics import NormalDist
from typing import Any

from ldprecover.errors import ParameterError
from ldprecover.estimation.theory import WorstChange, worst_change
from ldprecover.planning.choosing import choose
from ldprecover.planning.curves import Curves, errors_around
from ldprecover.planning.gains import Gain, gains
from ldprecover.planning.measured import PAGE, SETTING, Measured, measured_of
from ldprecover.planning.solving import setting_of
from ldprecover.planning.wish import Unknown, Wish
from ldprecover.protocols import PROTOCOLS, frequency_oracle

_BETA = 0.05
_CONFIDENCE = 0.95


@dataclass(frozen=True)
class PlannedRound:
    """What one protocol makes of a wish. Where it cannot be had `reason` says why, and the numbers
    are None.

    `standard_error` is that of what was asked for; `margin` is half its interval at 95 %, and
    `margin_of_all` the same for all d items at once, for one of any frequency (by Bonferroni).
    `report_size` is in bytes, `hash_tests` are the items hashed to count all reports. `beta` is the
    share of malicious users, `gains` and `worst` what they add at most to the estimates of the
    targets together, which nobody holds: by attack, and whatever report they find. `measured` is
    what recoveries left of attacks in a measured round of this protocol: cited, not worked out.
    """

    protocol: str
    own: dict[str, Any]
    reason: str | None = None
    domain_size: int | None = None
    users: int | None = None
    epsilon: float | None = None
    standard_error: float | None = None
    margin: float | None = None
    margin_of_all: float | None = None
    report_size: int | None = None
    hash_tests: float | None = None
    targets: int | None = None
    beta: float | None = None
    gains: tuple[Gain, ...] = ()
    worst: WorstChange | None = None
    measured: tuple[Measured, ...] = ()


@dataclass(frozen=True)
class Plan:
    """What every protocol makes of a wish, the one to take first, those that cannot have it
    last.
    """

    wish: Wish
    rounds: tuple[PlannedRound, ...]

    @property
    def best(self) -> PlannedRound | None:
        """The one to take; None where none can have it."""
        first = self.rounds[0]
        return first if first.reason is None else None

    def to_dict(self, curves: Curves | None = None) -> dict[str, Any]:
        """Return the plan as JSON has it."""
        wished = {field.name: getattr(self.wish, field.name) for field in fields(self.wish)}
        return {
            "solved": self.wish.solved,
            "wish": wished,
            "protocols": [asdict(each) for each in self.rounds],
            "measured_in": SETTING,
            "measured_at": PAGE,
            "curves": None if curves is None else asdict(curves),
        }

    def curves(self) -> Curves | None:
        """Return the errors of all protocols around the best round; None where none can have it."""
        best = self.best
        if best is None or best.domain_size is None or best.users is None or best.epsilon is None:
            return None
        return errors_around(self.wish, best.domain_size, best.users, best.epsilon, self.protocols)

    @property
    def protocols(self) -> tuple[str, ...]:
        """The names of the protocols, in their order."""
        return tuple(each.protocol for each in self.rounds)


def plan(wish: Wish, protocols: Iterable[str] | None = None, *, thorough: bool = False) -> Plan:
    """Return what each protocol makes of a wish; of all there are, unless given.

    They stand in the order in which `theory.choose` has them in the setting of whichever needs
    least. `thorough` is of `gains`. Raises ParameterError for a protocol that does not exist, and
    for none.
    """
    names = list(dict.fromkeys(PROTOCOLS if protocols is None else protocols))
    if not names:
        raise ParameterError("protocols must name at least one")
    for name in names:
        frequency_oracle(name, 1.0, 2)  # raises for one that is none
    found = [_round(wish, name, thorough=thorough) for name in names]
    able = [each for each in found if each.reason is None]
    order = {name: len(names) for name in names}
    if able:
        least = min(able, key=_needs(wish.solved))
        assert least.domain_size is not None
        assert least.epsilon is not None
        assert least.users is not None
        chosen = choose(
            least.domain_size, least.epsilon, least.users, [each.protocol for each in able]
        )
        order |= {each.oracle.protocol: place for place, each in enumerate(chosen.candidates)}
    return Plan(wish, tuple(sorted(found, key=lambda each: order[each.protocol])))


def _round(wish: Wish, protocol: str, *, thorough: bool) -> PlannedRound:
    try:
        oracle, users = setting_of(wish, protocol)
        error = wish.error_of(oracle, users)
    except ParameterError as refused:
        return PlannedRound(protocol, {}, str(refused))
    d = oracle.domain_size
    r = min(wish.targets_of(d), d - 1)
    stated = gains(oracle, r, thorough=thorough)
    whatever = worst_change(oracle, 1.0, r, 0.0).rise
    beta = _BETA if wish.beta is None else wish.beta
    if wish.gain is not None:
        beta = min(
            1.0,
            wish.gain / max([whatever, *(each.gain for each in stated if each.gain is not None)]),
        )
    # The largest of any item's: the variance is linear in its frequency.
    largest = math.sqrt(max(float(oracle.variance(f, users)) for f in (0.0, 1.0)))
    normal = NormalDist()
    return PlannedRound(
        protocol,
        oracle.own,
        None,
        d,
        users,
        oracle.epsilon,
        error,
        normal.inv_cdf((1 + _CONFIDENCE) / 2) * error,
        normal.inv_cdf(1 - (1 - _CONFIDENCE) / (2 * d)) * largest,
        oracle.report_size,
        float(oracle.hash_tests) * users,
        r,
        beta,
        tuple(
            Gain(each.attack, each.sends, _times(beta, each.gain), each.reason) for each in stated
        ),
        worst_change(oracle, beta, r, 0.0),
        measured_of(protocol),
    )


def _needs(solved: Unknown) -> Callable[[PlannedRound], float]:
    """Return what a planned round needs of what was worked out: the less the better."""

    def needs(each: PlannedRound) -> float:
        needed = {
            "domain_size": -(each.domain_size or 0),
            "users": each.users,
            "epsilon": each.epsilon,
            "error": each.standard_error,
        }
        return float(needed[solved] or 0)

    return needs


def _times(beta: float, gain: float | None) -> float | None:
    return None if gain is None else beta * gain
