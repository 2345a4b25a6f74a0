"""The contract of recovery methods: requests, inputs, results, and the table that runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ldprecover._checks import (
    check_parameters,
    check_real,
    check_whole,
    did_you_mean,
    finite_vector,
    plugin_hint,
    real,
)
from ldprecover.errors import ParameterError
from ldprecover.estimation.estimates import noise_note
from ldprecover.items import canary_indices, highest, target_indices, with_labels
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.conclusions import Conclusions
from ldprecover.recovery.malicious_models import MALICIOUS_MODELS
from ldprecover.reports.source import ReportSource
from ldprecover.reports.tally import Tally
from ldprecover.types import FloatArray

DEFAULT_ETA, MAX_ETA = 0.2, 10.0
AUTO = "auto"
"""The eta that is estimated from the counts, and the method that is chosen for the round."""

NEEDS = {
    "counts": "the frequencies",
    "history": "earlier rounds",
    "n": "the number of reports",
    "reports": "the reports themselves",
    "targets": "the attacked items (targets)",
}
"""Possible needs of a method, each with the text that a message calls it by."""


@dataclass(frozen=True, eq=False)
class RecoveryRequest:
    """Which method recovers a round, and what it may assume about the attack.

    `method` is a key of METHODS; "auto" chooses one. `options` are its options by name; missing
    ones are filled in with their defaults. `eta` is the assumed ratio m/n of malicious to genuine
    users, from 0 to 10, or "auto". `targets` are the indices of the attacked items; they become a
    sorted tuple without duplicates. `malicious_model` is a key of MALICIOUS_MODELS. `support`
    belongs to the model custom: support[v] is the share of malicious reports that support item v,
    pi(v) in the paper. `history` holds earlier rounds over the same items, each as its oracle and
    its tally; their reports are taken to be honest. `canaries` are the indices of items that nobody
    holds, at most 100; at least two other items remain. `own` is a method that METHODS need not
    have, or a function as `Method.of` takes it; `method` is then its name.

    Raises ParameterError. `RecoveryInputs` checks what depends on the number of items d.

        RecoveryRequest("ldprecover", eta=0.1, targets=[3, 40])
    """

    method: str = AUTO
    _: KW_ONLY
    eta: float | str = DEFAULT_ETA
    targets: Iterable[int] = ()
    malicious_model: str = "paper"
    support: ArrayLike | None = None
    options: Mapping[str, float | str] = field(default_factory=dict)
    history: Iterable[tuple[FrequencyOracle, Tally]] = ()
    canaries: Iterable[int] = ()
    own: Method | Callable[..., ArrayLike] | None = None

    def __post_init__(self) -> None:
        if self.own is not None:
            own = Method.of(self.own)
            object.__setattr__(self, "own", None if METHODS.get(own.name) is own else own)
            object.__setattr__(self, "method", own.name)
        elif not isinstance(self.method, str) or self.method not in METHODS:
            hint = plugin_hint("ldprecover.methods", str(self.method))
            raise ParameterError(
                f"method must be one of {', '.join(METHODS)}, not {str(self.method)[:60]!r}"
                f"{hint or did_you_mean(self.method, METHODS)}"
            )
        if not isinstance(self.eta, str) or self.eta != AUTO:
            eta = real(self.eta)
            if eta is None or not 0 <= eta <= MAX_ETA:
                raise ParameterError(
                    f"eta must be a number from 0 to {MAX_ETA:g} or {AUTO!r}, not {self.eta!r:.40}",
                    field="eta",
                )
            object.__setattr__(self, "eta", eta)
        model = self.malicious_model
        if not isinstance(model, str) or model not in MALICIOUS_MODELS:
            raise ParameterError(
                f"malicious_model must be one of {', '.join(MALICIOUS_MODELS)}, not {model!r:.40}",
                field="malicious_model",
            )
        if self.support is not None:
            support = finite_vector(self.support, "support")
            for i in np.flatnonzero((support < 0) | (support > 1)):
                field = f"support.{i}"
                raise ParameterError(
                    f"{field} must be a number from 0 to 1, not {support[i]}", field=field
                )
            object.__setattr__(self, "support", support)
        object.__setattr__(self, "targets", target_indices(self.targets, None))
        object.__setattr__(self, "options", self.chosen.checked(self.options))
        object.__setattr__(self, "history", _checked_history(self.history))
        object.__setattr__(self, "canaries", canary_indices(self.canaries, None))

    @property
    def chosen(self) -> Method:
        """The method that is requested."""
        return METHODS[self.method] if self.own is None else Method.of(self.own)

    def method_of(self, recovery: Recovery) -> Method:
        """Return the method that made this recovery, which "auto" has chosen."""
        is_chosen = recovery.method == self.method
        return self.chosen if is_chosen else METHODS.get(recovery.method, self.chosen)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The names of the fields that state an assumption about the attack."""
        stated = {
            "eta": self.eta != DEFAULT_ETA,
            "targets": bool(self.targets),
            "malicious_model": self.malicious_model != "paper",
            "support": self.support is not None,
            "history": bool(self.history),
            "canaries": bool(self.canaries),
        }
        return tuple(name for name, is_stated in stated.items() if is_stated)


@dataclass(frozen=True, eq=False)
class RecoveryInputs:
    """The inputs of a method: the data of one poisoned round, and the request.

    `poisoned` are the unbiased, unclipped frequencies f~_Z of the d items. `n` is the number of
    reports behind them and `reports` are the reports.

    Raises ParameterError, also for a request that does not fit the d items.
    """

    oracle: FrequencyOracle
    poisoned: FloatArray
    request: RecoveryRequest = field(default_factory=RecoveryRequest)
    n: int | None = None
    reports: ReportSource | None = None

    def __post_init__(self) -> None:
        d = self.oracle.domain_size
        poisoned = finite_vector(self.poisoned, "frequencies", d)
        if (abs(poisoned) > 1.000001 / (self.oracle.p - self.oracle.q)).any():
            raise ParameterError(
                f"no counts of {self.oracle.protocol} reports give such frequencies: "
                "`oracle.estimate` takes counts"
            )
        if len(target_indices(self.targets, d)) == d:
            raise ParameterError(f"targets must leave out at least one of the {d} items")
        if self.n is not None:
            object.__setattr__(self, "n", check_whole("n, the number of reports,", self.n, 1))
        if self.support is not None and self.support.size != d:
            raise ParameterError(
                f"support must be of the {d} items, each from 0 to 1, not of {self.support.size}"
            )
        for oracle, _ in self.history:
            if oracle.domain_size != d:
                raise ParameterError(
                    f"history must be of rounds over the same {d} items, not {oracle.domain_size}"
                )
        object.__setattr__(self, "poisoned", poisoned)
        canary_indices(self.canaries, d)

    @property
    def targets(self) -> tuple[int, ...]:
        """The targets of the request, sorted and unique."""
        return tuple(self.request.targets)

    @property
    def support(self) -> FloatArray | None:
        """The support of the request, one number for each item."""
        return None if self.request.support is None else np.asarray(self.request.support)

    @property
    def history(self) -> tuple[tuple[FrequencyOracle, Tally], ...]:
        """The history of the request."""
        return tuple(self.request.history)

    @property
    def canaries(self) -> tuple[int, ...]:
        """The canaries of the request, sorted and unique."""
        return tuple(self.request.canaries)

    @property
    def number(self) -> int:
        """`n`, or else the number of the reports. Raises ParameterError for no reports."""
        n = self.reports.tally().n if self.n is None and self.reports is not None else self.n
        if not n:
            raise ParameterError(f"{self.request.method}: there are no reports")
        return n

    @property
    def available(self) -> frozenset[str]:
        """Those of NEEDS that are there."""
        present = {
            "counts": True,
            "n": self.n is not None or self.reports is not None,
            "reports": self.reports is not None,
            "targets": bool(self.targets),
            "history": bool(self.history),
        }
        return frozenset(name for name, is_present in present.items() if is_present)

    def recovery(
        self,
        recovered: FloatArray,
        notes: Iterable[str],
        *,
        eta: float = 0.0,
        targets: tuple[int, ...] = (),
        malicious: FloatArray | None = None,
        genuine: FloatArray | None = None,
        conclusions: Conclusions | None = None,
    ) -> Recovery:
        """Return the result of the requested method.

        By default no malicious frequencies are assumed, and the poisoned ones are the genuine.
        """
        return Recovery(
            method=self.request.method,
            eta=eta,
            targets=targets,
            malicious_sum=self.oracle.malicious_sum,
            poisoned=self.poisoned,
            malicious=np.zeros_like(self.poisoned) if malicious is None else malicious,
            genuine=self.poisoned.copy() if genuine is None else genuine,
            recovered=recovered,
            notes=tuple(notes),
            conclusions=conclusions,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Recovery:
    """The result of a recovery method, which `recover` returns. Vectors have shape (d,).

    `recovered` are the frequencies of the honest users, shares that sum to 1.

    `poisoned` are the estimates from all reports. `eta` and `targets` are those the method used, 0
    and () if it uses none. `malicious_sum` is S = (1 - qd)/(p - q). `malicious` is the assumed
    f~_Y, `genuine` the estimate (1 + eta) f~_Z - eta f~_Y before refining. For a method that drops
    reports, `malicious` are the estimates from the dropped reports, `genuine` those from the
    others, and `eta` is the ratio of their numbers; Equation 1 of the paper holds as well. `notes`
    are sentences on the assumptions and their effect. `conclusions` are the method's own errors and
    findings, if it states any. `n` is the number of all reports, if it is known.
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
    n: int | None = None

    def to_dict(self, labels: Sequence[str]) -> dict[str, Any]:
        """Return the JSON form: vectors as lists, notes and conclusions with the items' labels."""
        vectors = ("poisoned", "malicious", "genuine", "recovered")
        return {
            **vars(self),
            **{name: getattr(self, name).tolist() for name in vectors},
            "notes": [with_labels(note, labels) for note in self.notes],
            "conclusions": self.conclusions and self.conclusions.to_dict(labels, self.notes),
        }

    def __repr__(self) -> str:
        top = highest(self.recovered)
        return f"Recovery({self.method}, {len(self.recovered):,} items: {top})"


@dataclass(frozen=True)
class Option:
    """An option of one method, with its default: a number in an inclusive range, or one of
    `choices`. Raises ParameterError for a default without its range or choices.

        Option("least", default=4, low=2, high=12, meaning="Items of the smallest sets")
        Option("match", default="any", meaning="Targets to support", choices=("any", "all"))
    """

    name: str
    _: KW_ONLY
    default: float | str
    low: float | None = None
    high: float | None = None
    meaning: str = ""
    choices: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.default, str):
            if self.default not in self.choices:
                raise ParameterError(f"{self.name}: the default must be one of the choices")
        elif self.low is None or self.high is None:
            raise ParameterError(f"{self.name}: a number has a lowest and a highest value")

    def check(self, value: object) -> float | str:
        """Return the value in the type of the default. Raises ParameterError for another one."""
        if isinstance(self.default, str):
            if value not in self.choices:
                names = ", ".join(self.choices)
                raise ParameterError(f"{self.name} must be one of {names}, not {value!r:.40}")
            return str(value)
        assert self.low is not None
        assert self.high is not None
        if not isinstance(self.default, int):
            return check_real(self.name, value, self.low, self.high)
        if (number := real(value)) is not None and number.is_integer():
            value = int(number)
        return check_whole(self.name, value, self.low, self.high)


def _checked_history(history: object) -> tuple[tuple[FrequencyOracle, Tally], ...]:
    """Return earlier rounds as a tuple. Raises ParameterError unless each is (oracle, tally)."""
    words = "history must be pairs of a frequency oracle and a tally"
    if not isinstance(history, Iterable):
        raise ParameterError(f"{words}, not {history!r:.40}")
    rounds: list[tuple[FrequencyOracle, Tally]] = []
    for pair in history:
        match pair:
            case (FrequencyOracle() as oracle, Tally() as tally):
                rounds.append((oracle, tally))
            case _:
                raise ParameterError(f"{words}, not {pair!r:.40}")
        if tally.n < 1:
            raise ParameterError("every round of the history must have a report")
        tally.counts(oracle)  # raises for the tally of another domain or protocol
    return tuple(rounds)


@dataclass(frozen=True)
class Method:
    """A recovery method: its name, a summary in one line, its function, and its requirements.

    `uses` are the fields of RecoveryRequest and RecoveryInputs that change the result. `needs` are
    those of NEEDS that the method requires, `better_with` those it uses if they are there. `gives`
    says what `recovered` is: a `distribution` (not negative, sums to one), `sum-one` (sums to one)
    or `frequencies` (neither). `long` methods can take seconds on counts alone. `cost` is the time
    for d items and n reports. `unfit` returns why the method cannot work under a protocol, or None.
    """

    name: str
    summary: str
    _: KW_ONLY
    uses: Set[str]
    recover: Callable[[RecoveryInputs], Recovery]
    needs: Set[str] = frozenset({"counts"})
    better_with: Set[str] = frozenset()
    long: bool = False
    gives: Literal["distribution", "sum-one", "frequencies"] = "distribution"
    cost: str = "O(d log d)"
    options: tuple[Option, ...] = ()
    unfit: Callable[[FrequencyOracle], str | None] = lambda _: None

    @classmethod
    def of(cls, value: object, name: str | None = None) -> Method:
        """Return a Method as it is, and a function as a method of this name, by default its own.

        The function takes the estimates, d unbiased and unclipped frequencies, and the oracle, and
        returns d frequencies. Raises ParameterError for anything else.

            Method.of(lambda estimates, oracle: np.maximum(estimates, 0), "clipped")
        """
        if isinstance(value, Method):
            return value
        expected = "must be a Method or a function (estimates, oracle) -> frequencies"
        if isinstance(value, type) or not callable(value):
            raise ParameterError(
                f"a method {expected}, not {repr(value).partition(' at 0x')[0]:.60}"
            )
        function, title = value, name or str(getattr(value, "__name__", type(value).__name__))
        check_parameters(function, 2, f"{title} {expected}")

        def recover(inputs: RecoveryInputs) -> Recovery:
            try:
                frequencies = function(inputs.poisoned.copy(), inputs.oracle)
            except Exception as error:
                error.add_note(f"in the method {title}")
                raise
            size = inputs.oracle.domain_size
            return inputs.recovery(finite_vector(frequencies, f"the result of {title}", size), ())

        return cls(
            name=title,
            summary="A function of the estimates.",
            uses=frozenset(),
            recover=recover,
            gives="frequencies",
        )

    def refusal(self, oracle: FrequencyOracle, available: frozenset[str]) -> str | None:
        """Return why the method cannot run under this protocol with the `available` NEEDS, or None.

        Impossible numbers show only when it runs.
        """
        reason = self.unfit(oracle)
        if reason is not None:
            return f"{self.name}: {reason}"
        missing = [words for need, words in NEEDS.items() if need in self.needs - available]
        return f"{self.name} needs {' and '.join(missing)}" if missing else None

    def unused(self, request: RecoveryRequest) -> str | None:
        """Return the note that names the assumptions the method does not use, or None."""
        uses, model, under = self.uses, request.malicious_model, ""
        if "malicious_model" in uses:
            # The model decides which field says what malicious reports support.
            uses, under = (
                uses - {"targets" if model == "custom" else "support"},
                f" under the malicious model {model}",
            )
        ignored = [name for name in request.assumptions if name not in uses]
        return f"{self.name} does not use {', '.join(ignored)}{under}." if ignored else None

    def checked(self, options: Mapping[str, object]) -> Mapping[str, float | str]:
        """Return the options, with defaults for missing ones. Raises ParameterError."""
        if not isinstance(options, Mapping):
            raise ParameterError(
                f"options must be a mapping of names to values, not {options!r:.40}"
            )
        known_options = {option.name: option for option in self.options}
        for name in options:
            if name not in known_options:
                takes = (
                    f"its options are {', '.join(known_options)}"
                    if known_options
                    else "it has none"
                )
                raise ParameterError(f"{self.name} has no option {name!r:.40}; {takes}")
        return {name: o.check(options.get(name, o.default)) for name, o in known_options.items()}


METHODS: dict[str, Method] = {}
"""Every recovery method by its name; the package and plugins fill it in."""


def run_method(inputs: RecoveryInputs) -> Recovery:
    """Return what the requested method recovers from these inputs, as `recover`, without warnings.

    Raises as `recover` does.
    """
    request = inputs.request
    method = request.chosen
    refusal = method.refusal(inputs.oracle, inputs.available)
    if refusal is not None:
        raise ParameterError(refusal)
    recovery = method.recover(inputs)
    unused = request.method_of(recovery).unused(request)
    noise, n = None, inputs.n
    if n is not None:
        noise = noise_note(inputs.poisoned, inputs.oracle.standard_errors(inputs.poisoned, n))
    notes = (noise, *recovery.notes, unused)
    return replace(recovery, notes=tuple(note for note in notes if note), n=n)


def recover_tally(
    oracle: FrequencyOracle,
    tally: Tally,
    reports: ReportSource | None,
    *,
    request: RecoveryRequest,
    history: Sequence[tuple[FrequencyOracle, Tally]] = (),
) -> Recovery:
    """Return what `recover` does of a tally and, if they are given, its reports; without warnings.

    The `history` replaces that of the request. Raises as `recover` does.
    """
    if history:
        request = replace(request, history=history)
    frequencies = tally.frequencies(oracle)
    return run_method(RecoveryInputs(oracle, frequencies, request, n=tally.n, reports=reports))
