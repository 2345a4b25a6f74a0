"""The one contract of every recovery method: from what is known of a poisoned round to a
recovery.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from ldprecover._checks import finite_vector, real, whole
from ldprecover._origins import named
from ldprecover.canaries import canary_indices
from ldprecover.counting.tally import Tally
from ldprecover.errors import ParameterError
from ldprecover.items import target_indices
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.conclusions import Conclusions
from ldprecover.recovery.malicious import MALICIOUS_MODELS
from ldprecover.recovery.reports import ReportSource
from ldprecover.types import FloatArray

DEFAULT_ETA, MAX_ETA = 0.2, 10.0
AUTO = "auto"
"""The eta that is estimated from the counts instead of being assumed."""

NEEDS = ("counts", "history", "n", "reports", "targets")
"""What a method can need: the frequencies, earlier rounds, the number of reports, these themselves,
attacked items.
"""


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What a server knows of a poisoned round, and what it assumes of the attack.

    `poisoned` are the unbiased, unclipped frequencies f~_Z of the d items. `eta`, from 0 to 10, is
    the assumed ratio m/n of malicious to genuine users, or "auto". `targets` are the items known to
    be attacked, as indices: kept sorted and once each, never all d of them. `malicious_model` names
    one of MALICIOUS_MODELS; `support` is the pi of the model custom: pi(v) is the share of
    malicious reports that support v. `n` is the number of reports behind the frequencies, `reports`
    the reports. `history` are the tallies of earlier rounds over the same items, with their
    oracles, whose reports are taken to be honest. `options` are of the method alone, by name.
    `canaries` are the items that nobody holds, as indices: evidence of what malicious reports did
    to all items alike. `progress` is nothing that is known: a method that takes long calls it with
    the share that is done of what it does once it has read the reports. Everything is checked,
    whether or not a method uses it; what it does not use of `assumed` a note of the recovery names.

    Raises ParameterError.
    """

    oracle: FrequencyOracle
    poisoned: FloatArray
    eta: float | str = DEFAULT_ETA
    targets: tuple[int, ...] = ()
    malicious_model: str = "paper"
    n: int | None = None
    reports: ReportSource | None = None
    support: FloatArray | None = None
    options: Mapping[str, float] = field(default_factory=dict)
    history: tuple[tuple[FrequencyOracle, Tally], ...] = ()
    canaries: tuple[int, ...] = ()
    progress: Callable[[float], None] | None = None

    def __post_init__(self) -> None:
        d = self.oracle.domain_size
        poisoned = finite_vector(self.poisoned, "frequencies")
        if poisoned.size != d:
            raise ParameterError(f"frequencies must be of the {d} items, not {poisoned.size}")
        if not isinstance(self.eta, str) or self.eta != AUTO:
            eta = real(self.eta)
            if eta is None:
                raise ParameterError(f"eta must be a number, or {AUTO}")
            if not 0 <= eta <= MAX_ETA:
                raise ParameterError(f"eta must be from 0 to {MAX_ETA:g}, not {self.eta}")
            object.__setattr__(self, "eta", eta)
        targets = target_indices(self.targets, d)
        if len(targets) == d:
            raise ParameterError(f"targets must leave out at least one of the {d} items")
        if (
            not isinstance(self.malicious_model, str)
            or self.malicious_model not in MALICIOUS_MODELS
        ):
            raise ParameterError(
                f"malicious_model must be one of {', '.join(MALICIOUS_MODELS)}, not "
                f"{self.malicious_model!r}"
            )
        if self.n is not None:
            n = whole(self.n)
            if n is None or n < 1:
                raise ParameterError("n, the number of reports, must be an integer of at least 1")
            object.__setattr__(self, "n", n)
        if self.support is not None:
            support = finite_vector(self.support, "support")
            if support.size != d or not ((support >= 0) & (support <= 1)).all():
                raise ParameterError(f"support must be of the {d} items, each from 0 to 1")
            object.__setattr__(self, "support", support)
        object.__setattr__(self, "poisoned", poisoned)
        object.__setattr__(self, "targets", targets)
        object.__setattr__(self, "history", _checked_history(self.history, d))
        object.__setattr__(self, "canaries", canary_indices(self.canaries, d))

    @property
    def assumed(self) -> tuple[str, ...]:
        """The fields that hold an assumption about the attack which is not the default."""
        given = {
            "eta": self.eta != DEFAULT_ETA,
            "targets": bool(self.targets),
            "malicious_model": self.malicious_model != "paper",
            "support": self.support is not None,
            "history": bool(self.history),
        }
        return tuple(name for name, is_given in given.items() if is_given)

    @property
    def gives(self) -> frozenset[str]:
        """Those of NEEDS that are known."""
        known = {"counts"}
        if self.n is not None:
            known.add("n")
        if self.reports is not None:
            known |= {"reports", "n"}
        if self.targets:
            known.add("targets")
        if self.history:
            known.add("history")
        return frozenset(known)


@dataclass(frozen=True, eq=False)
class Recovery:
    """What a recovery method made of poisoned frequencies. Vectors are of the d items.

    `eta` and `targets` are what the method used: 0 and none where it uses neither. `malicious_sum`
    is S = (1 - qd)/(p - q). `malicious` is the assumed f~_Y, `genuine` the estimate (1 + eta)
    f~_Z - eta f~_Y before refining, `recovered` the result. A method that drops reports has as
    `malicious` what the dropped ones estimate, as `genuine` what the kept ones do, and as `eta`
    their ratio: by the paper's Equation 1 the same relation. `notes` are sentences in which the
    method says what it assumed and what came of it. `conclusions` are what it says of its errors
    and of the attack, where it says anything.
    """

    method: str
    eta: float
    targets: tuple[int, ...]
    malicious_sum: float
    poisoned: FloatArray
    malicious: FloatArray
    genuine: FloatArray
    recovered: FloatArray
    notes: tuple[str, ...]
    conclusions: Conclusions | None = None


@dataclass(frozen=True)
class Option:
    """A number that one method alone takes: its default and range, both ends allowed."""

    name: str
    default: float
    low: float
    high: float
    meaning: str

    def check(self, value: object) -> float:
        """Return the value as the type of the default, 4.0 as 4. Raises ParameterError outside the
        range.
        """
        integer, number = isinstance(self.default, int), real(value)
        if (
            number is None
            or not self.low <= number <= self.high
            or (integer and not number.is_integer())
        ):
            kind, form = ("an integer", ".0f") if integer else ("a number", "g")
            bounds = f"from {self.low:{form}} to {self.high:{form}}"
            raise ParameterError(f"{self.name} must be {kind} {bounds}, not {value!r:.40}")
        return type(self.default)(number)


def indices_named(items: Iterable[int]) -> str:
    """Return items as a note has them, "item index 2" or "item indices 2, 5", for labels may be
    numbers too.
    """
    named = [str(item) for item in items]
    return f"item {'index' if len(named) == 1 else 'indices'} {', '.join(named)}"


def _checked_history(given: object, d: int) -> tuple[tuple[FrequencyOracle, Tally], ...]:
    """Return earlier rounds as a tuple. Raises ParameterError for what is none, or is not of the d
    items.
    """
    words = "history must be pairs of a frequency oracle and a tally"
    if not isinstance(given, Iterable):
        raise ParameterError(f"{words}, not {given!r:.40}")
    rounds: list[tuple[FrequencyOracle, Tally]] = []
    for pair in given:
        match pair:
            case (FrequencyOracle() as oracle, Tally() as tally):
                rounds.append((oracle, tally))
            case _:
                raise ParameterError(f"{words}, not {pair!r:.40}")
        if oracle.domain_size != d:
            raise ParameterError(
                f"history must be of rounds over the same {d} items, not {oracle.domain_size}"
            )
        if tally.n < 1:
            raise ParameterError("every round of the history must have a report")
        tally.counts(oracle)
    return tuple(rounds)


def _no_reason(_: FrequencyOracle) -> str | None:
    return None


@dataclass(frozen=True)
class Method:
    """A recovery method: its name, one line on it, what it takes and gives, and itself.

    `uses` are the fields of Knowledge that change its result where they are given, `needs` those of
    NEEDS it cannot do without, `better_with` those it can do without and uses where they are there.
    `gives` says what `recovered` is: a `distribution` (not negative, sums to one), `sum-one` (sums
    to one, may be negative) or `frequencies` (neither promised). `long` says that it takes more
    than milliseconds on a few thousand items. `cost` is one line. `unfit` returns why the method
    cannot work under a protocol, or None.
    """

    name: str
    summary: str
    uses: frozenset[str]
    recover: Callable[[Knowledge], Recovery]
    needs: frozenset[str] = frozenset({"counts"})
    better_with: frozenset[str] = frozenset()
    long: bool = False
    gives: Literal["distribution", "sum-one", "frequencies"] = "distribution"
    cost: str = "O(d log d)"
    options: tuple[Option, ...] = ()
    unfit: Callable[[FrequencyOracle], str | None] = _no_reason

    def refusal(self, oracle: FrequencyOracle, known: frozenset[str]) -> str | None:
        """Return why the method can say nothing under this protocol from what is `known` of NEEDS;
        None if it can.

        What the numbers themselves may make impossible shows only when it recovers.
        """
        try:
            reason = self.unfit(oracle)
        except Exception as error:  # noqa: BLE001  anybody's: one method that fails hides no other
            return (
                f"{named('method', self.name)} cannot say whether it fits: "
                f"{type(error).__name__}: {error!s:.200}"
            )
        if reason is not None:
            return f"{self.name}: {reason}"
        words = {
            "history": "earlier rounds",
            "n": "the number of reports",
            "reports": "the reports themselves",
            "targets": "the attacked items",
        }
        missing = [words[need] for need in NEEDS if need in self.needs and need not in known]
        return f"{self.name} needs {' and '.join(missing)}" if missing else None

    def unused(self, knowledge: Knowledge) -> str | None:
        """Return the sentence that names the assumptions which were made and take no part; None
        where all do.
        """
        uses, model, under = self.uses, knowledge.malicious_model, ""
        if (
            "malicious_model" in uses
        ):  # it decides which of the two says what malicious reports support
            uses, under = (
                uses - {"targets" if model == "custom" else "support"},
                f" under the malicious model {model}",
            )
        ignored = [name for name in knowledge.assumed if name not in uses]
        return f"{self.name} does not use {', '.join(ignored)}{under}." if ignored else None

    def checked(self, options: Mapping[str, object]) -> Mapping[str, float]:
        """Return all the method's options, the defaults where none is given. Raises
        ParameterError.
        """
        if not isinstance(options, Mapping):
            raise ParameterError(
                f"options must be a mapping of names to numbers, not {options!r:.40}"
            )
        known = {option.name: option for option in self.options}
        for name in options:
            if name not in known:
                takes = f"its options are {', '.join(known)}" if known else "it has none"
                raise ParameterError(f"{self.name} has no option {name!r:.40}; {takes}")
        return MappingProxyType(
            {name: o.check(options.get(name, o.default)) for name, o in known.items()}
        )
