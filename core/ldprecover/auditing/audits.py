"""What the reports of a client prove of its epsilon, by events that are likelier for one value."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import (
    chain,
    combinations_with_replacement,
    count,
    groupby,
    permutations,
)
from typing import Any

import numpy as np

from ldprecover._checks import check_real, check_whole
from ldprecover.auditing.features import group_features, shortened
from ldprecover.distributions import chi_squared_normal, log_factorials, log_normal_tail
from ldprecover.errors import LDPRecoverError, ParameterError, ReportError
from ldprecover.protocols import FrequencyOracle
from ldprecover.sentences import DOWN, number

_CHOOSING = 5  # the inverse of the share of calls that chooses events
_EVENTS = 16  # of two values, for each of them
_STARTS, _CALLS_OF_START = 20, 20  # at least, where a memory would explain a violation
_DEVIATIONS = 5.5  # of the bounds by which events are chosen
_STEPS = 60  # of a bisection
_MOST_EPSILON = 100.0
_SHOWN = 120  # characters of an event

Event = frozenset[str]
Function = Callable[[Any], Any]


@dataclass(frozen=True, kw_only=True)
class Audit:
    """What `calls` of a client prove of the epsilon that it claims.

    `at_least` is a lower bound on its epsilon, wrong with a probability of at most `error`. It is
    by the `event`: of each of two `values`, likelier first, `counts` has how many reports have it,
    and of how many. `note` says what was assumed, or why nothing was `audited`.
    """

    audited: bool = True
    claimed: float
    at_least: float = 0.0
    error: float
    calls: int
    event: str = ""
    values: tuple[str, ...] = ()
    counts: tuple[tuple[int, int], ...] = ()
    note: str = ""

    @property
    def violation(self) -> bool:
        """Whether the epsilon is proven to be larger than claimed."""
        return self.at_least > self.claimed

    @property
    def evidence(self) -> str:
        """The event, and in how many reports of two values it is; empty without any."""
        event = self.event if len(self.event) <= _SHOWN else f"{self.event[: _SHOWN - 1]}…"
        numbers = (
            f"in {hits:,} of {n:,} reports of {value}"
            for value, (hits, n) in zip(self.values, self.counts, strict=True)
        )
        return f"{event} {', '.join(numbers)}" if self.counts else ""

    @property
    def sentences(self) -> list[str]:
        """The answer: the verdict, the evidence, and what was assumed."""
        least, claimed = number(self.at_least, DOWN), number(self.claimed)
        if not self.audited:
            lines = ["Nothing was audited."]
        elif self.violation:
            wrong = f"wrong with probability {self.error:g}"
            lines = [
                f"Not {claimed}-LDP: at least {least} ({wrong}).",
                f"Evidence: {self.evidence}.",
            ]
        else:
            reached = f"The evidence reaches {least} of {claimed}"
            lines = [f"No violation found. {reached}: it proves nothing about what was not tried."]
        return [*lines, *filter(None, [self.note])]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as values of JSON, with `violation` and `evidence`."""
        return {**asdict(self), "violation": self.violation, "evidence": self.evidence}


def audit(
    function: Function,
    values: Sequence[Any],
    epsilon: float,
    *,
    calls: int = 20_000,
    error: float = 1e-6,
    restart: Callable[[], object] = lambda: None,
    fresh: bool = False,
    oracle: FrequencyOracle | None = None,
    progress: Callable[[int, int], object] = lambda done, total: None,
    seed: int | None = None,
) -> Audit:
    """Return what the reports `function(value)` of two or more values prove of its epsilon.

    A value that is a list is a history: the function is called for each of its entries, and
    `epsilon` is claimed for all of these reports together; `calls` counts histories. A fifth of
    them chooses events, and the others certify these by the bounds of Clopper and Pearson (1934),
    wrong for any with a probability of at most `error`. A report may be of any type; so may an
    exception, but an LDPRecoverError ends the audit.

    `restart` makes the client forget. It is called before each history if `fresh`. Else calls are
    taken as independent, but for a violation that restarts explain by a memory. `oracle` decodes
    reports in its JSON form, or its rows. The order of calls is random, by `seed` or the operating
    system; `progress` is called with the calls so far, and all. Raises ParameterError for fewer
    than two different values, and for arguments out of range.

    Example:
        >>> flawed = lambda value: value if random.random() < 0.05 else random.choice("ab")
        >>> audit(flawed, ["a", "b"], epsilon=0.05, calls=100_000).violation
        True
    """
    histories = {_text(value): value if isinstance(value, list) else [value] for value in values}
    k = len(histories)
    if k < 2 or not all(histories.values()):
        raise ParameterError("values must be two or more, and different", "values")
    _check(epsilon, k, calls, error)
    first, last = calls // (_CHOOSING * k), _certifying(calls, k)
    result: dict[str, Any] = {"claimed": epsilon, "error": error, "calls": k * (first + last)}
    client = _Client(function, [*histories.values()], oracle, seed)
    steps = count(1)

    def called(each: int) -> Iterator[tuple[int, list[Any]]]:
        for call in client.called(range(k), each, restart if fresh else None):
            progress(next(steps), result["calls"])
            yield call

    choosing: list[list[list[Any]]] = [[] for _ in histories]
    for index, reports in called(first):
        choosing[index].append(reports)
    counts = [Counter(chain.from_iterable(map(client.features, each))) for each in choosing]
    note = ""
    if not client.has_reported:
        note = f"Every call failed: {type(client.error).__name__}: {client.error}."
    elif all(each == counts[0] for each in counts) and {*counts[0].values()} == {first}:
        note = "All reports are the same."
    if note:
        return Audit(audited=False, note=note, **result)
    pairs = [*permutations(range(k), 2)]
    best = {(i, j): _best(counts[i], counts[j], first, last) for i, j in pairs}
    joint = [_joint(map(client.features, each), {*chain(*best.values())}) for each in choosing]
    events = {(i, j): _best(joint[i], joint[j], first, last, best[i, j]) for i, j in pairs}
    of_value = [{event for pair in pairs if i in pair for event in events[pair]} for i in range(k)]
    counts = [Counter() for _ in histories]
    for index, reports in called(last):
        shown = client.features(reports)
        counts[index].update(event for event in of_value[index] if event <= shown)

    level, names = _level(error, k), [*histories]
    proven = [
        (_log_ratio(counts[i][event], counts[j][event], last, level), i, j, event)
        for i, j in pairs
        for event in events[i, j]
    ]
    least, i, j, event = max(proven, key=lambda row: row[0])
    if least > epsilon and not fresh:
        depends = partial(_depends_on_start, client, restart, event, epsilon, error)
        if any(depends((index, counts[index][event], last)) for index in (i, j)):
            note = "The client remembers between calls: start it again for each (--fresh)."
            return Audit(audited=False, note=note, **result)
    return Audit(
        at_least=max(least, 0.0),
        event=" and ".join(sorted(event)),
        values=(names[i], names[j]),
        counts=((counts[i][event], last), (counts[j][event], last)),
        note="" if fresh else "Calls are assumed to be independent.",
        **result,
    )


def expected_evidence(epsilon: float, values: int, calls: int, error: float) -> float:
    """Return about what an audit proves of a sound client: of GRR with one item for each value.

    Raises ParameterError for arguments out of range.
    """
    _check(epsilon, values, calls, error)
    n, level = _certifying(calls, values), _level(error, values)
    p = math.exp(epsilon) / (math.exp(epsilon) + values - 1)
    q = (1 - p) / (values - 1)
    return max(_log_ratio(round(n * p), round(n * q), n, level), 0.0)


def _check(epsilon: float, values: int, calls: int, error: float) -> None:
    check_real("epsilon", epsilon, 0, _MOST_EPSILON, above=True)
    check_real("error", error, 0, 1, above=True)
    check_whole("calls", calls, 10 * values)


def least_probability(count: int, n: int, level: float) -> float:
    """Return the largest p with P(Binomial(n, p) >= count) <= level: a lower bound on p."""
    if count == 0:
        return 0.0
    # Beyond 40 standard deviations the probabilities vanish, for any p below the estimate.
    k = np.arange(count, min(n, count + 40 * math.isqrt(count) + 400) + 1)
    log_factorial = log_factorials(n)
    log_ways = log_factorial[n] - log_factorial[k] - log_factorial[n - k]
    low, high = 0.0, count / n
    for _ in range(_STEPS):
        p = (low + high) / 2
        tail = np.logaddexp.reduce(log_ways + k * math.log(p) + (n - k) * math.log1p(-p))
        low, high = (p, high) if tail <= math.log(level) else (low, p)
    return low


def _log_ratio(a: int, b: int, n: int, level: float) -> float:
    """Return a lower bound on the logarithm of the ratio of two probabilities, by a and b of n.

    Each of two bounds is wrong with a probability of `level`.
    """
    low, high = least_probability(a, n, level), 1 - least_probability(n - b, n, level)
    return math.log(low / high) if low > 0 else -math.inf


def _level(error: float, values: int) -> float:
    return error / (math.comb(values, 2) * 2 * _EVENTS * 2)


def _certifying(calls: int, values: int) -> int:
    """Return the number of calls of each value that certify."""
    return calls // values - calls // (_CHOOSING * values)


def _text(value: Any) -> str:
    """Return a value, or a history such as 'a'*26, 'b'*26."""
    if not isinstance(value, list):
        return repr(value)
    runs = [(each, len(list(run))) for each, run in groupby(map(repr, value))]
    return ", ".join(f"{each}*{times}" if times > 1 else each for each, times in runs)


def _joint(features: Iterable[set[str]], names: set[str]) -> Counter[Event]:
    """Return how many reports have each named feature, and each pair of them."""
    events = Counter[Event]()
    for each in features:
        pairs = combinations_with_replacement(sorted(each & names), 2)
        events.update(map(Event, pairs))
    return events


def _best(
    own: Counter[Any], other: Counter[Any], m: int, n: int, names: Sequence[str] = ()
) -> list[Any]:
    """Return the events that promise most for the first of two values, by m reports of each.

    The promise is Wilson's lower bound of one count over the upper bound of the other, if n reports
    have as many. Of events with equal counts one is returned. `names` restricts their features.
    """
    candidates = [event for event in own if not names or event <= {*names}]
    ends = []
    for each, sign in ((own, -1), (other, 1)):
        counts = np.array([each[event] for event in candidates]) * n / m
        half = _DEVIATIONS * np.sqrt(counts * (n - counts) / n + _DEVIATIONS**2 / 4)
        ends.append(counts + _DEVIATIONS**2 / 2 + sign * half)
    chosen: dict[tuple[int, int], Any] = {}
    for place in np.argsort(-ends[0] / ends[1], kind="stable").tolist():
        event = candidates[place]
        chosen.setdefault((own[event], other[event]), event)
        if len(chosen) == _EVENTS:
            break
    return [*chosen.values()]


class _Client:
    """A function that is called for histories of values, and the features of its reports."""

    def __init__(
        self,
        function: Function,
        histories: list[list[Any]],
        oracle: FrequencyOracle | None,
        seed: int | None,
    ) -> None:
        self._function, self._histories, self._oracle = function, histories, oracle
        self._random = random.Random(seed)
        self._texts = sorted({str(v) for each in histories for v in each if str(v)})
        self.error: Exception | None = None
        self.has_reported = False

    def called(
        self, indices: Iterable[int], each: int, restart: Callable[[], object] | None = None
    ) -> Iterator[tuple[int, list[Any]]]:
        """Yield the reports of this many calls of each history, in random order."""
        order = [index for index in indices for _ in range(each)]
        self._random.shuffle(order)
        for index in order:
            if restart is not None:
                restart()
            yield index, [self._report(value) for value in self._histories[index]]

    def features(self, reports: list[Any]) -> set[str]:
        """Return the features of the reports of one history."""
        return group_features(reports, self._texts)

    def _report(self, value: Any) -> Any:
        try:
            report = self._function(value)
        except LDPRecoverError:
            raise
        except Exception as error:  # noqa: BLE001  whether it raises may depend on the value
            self.error = error
            return error
        self.has_reported = True
        if self._oracle is None:
            return report
        rows, wire = report, self._oracle.wire
        try:
            if not isinstance(rows, np.ndarray):
                form = json.loads(rows) if isinstance(rows, str) else rows
                rows = wire.from_columns([form[column.name] for column in wire.columns])
            supports = self._oracle.supports(rows)[0].tolist()
        except (LookupError, TypeError, ValueError) as error:
            reason = f"not a report of {self._oracle.protocol}: {shortened(repr(report))}"
            raise ReportError(reason) from error
        return {"report": report, "supports": supports}


def _depends_on_start(
    client: _Client,
    restart: Callable[[], object],
    event: Event,
    epsilon: float,
    error: float,
    counts: tuple[int, int, int],
) -> bool:
    """Return whether the frequency of an event in reports of a value depends on the client's start.

    `counts` are the index of the value, how many reports of the audit have the event, and of how
    many. A sound client with a memory shows the same in all S starts, the event for one value and
    never for the other, with a probability of at most (1 + e^-epsilon)^-2S.
    """
    index, *audited = counts
    starts = math.ceil(-math.log(error) / (2 * math.log1p(math.exp(-epsilon))))
    hits = [0] * max(_STARTS, starts)
    for start in range(len(hits)):
        restart()
        for _, reports in client.called([index], _CALLS_OF_START):
            hits[start] += event <= client.features(reports)
    observed = np.array([audited[0], *hits])
    calls = np.array([audited[1], *[_CALLS_OF_START] * len(hits)])
    p = observed.sum() / calls.sum()
    if p in (0, 1):
        return False
    score = 0.0  # the deviance, which a few rare events do not blow up as Pearson's statistic
    for hit, mean in ((observed, calls * p), (calls - observed, calls * (1 - p))):
        score += 2 * float((hit * np.log(np.maximum(hit, 1) / mean)).sum())
    return log_normal_tail(chi_squared_normal(score, len(hits))) < math.log(error)
