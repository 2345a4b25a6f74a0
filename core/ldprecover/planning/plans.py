"""Plans: every protocol's solution of a plan request, the best first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import Any

from ldprecover._checks import check_whole
from ldprecover.errors import ParameterError
from ldprecover.estimation.estimates import two_sided_quantile
from ldprecover.evidence.unseen import ITEMS, UnseenGain, unseen_gain
from ldprecover.planning.accuracy import Accuracy, accuracy
from ldprecover.planning.choosing import candidate, choose, proposed_retention
from ldprecover.planning.request import PlanRequest, Unknown
from ldprecover.planning.solving import solve
from ldprecover.protocols import PROTOCOLS, frequency_oracle
from ldprecover.sentences import counted, number, percent, points, repeats_sentence

_CONFIDENCE = 0.95
_NON_RESPONSE = 5  # honest tickets for each that is used, as an example


@dataclass(frozen=True, kw_only=True)
class PlannedRound:
    """One protocol's solution. If it has none, `reason` says why and the numbers are None.

    `standard_error` is that of the requested sum; `margin` is half its 95 % interval, and
    `margin_of_all` half the 95 % interval of all d estimates at any frequency (Bonferroni).
    `report_size` is in bytes, `hash_tests` counts the items hashed to count all reports.
    `stored_bytes` is what the round stores for methods that read reports, and `retention` the
    setting that stores no more: "none" if the tally is the histogram of the reports.

    `gain` is the most that MGA by a share `beta` of malicious users adds to the estimates of
    `targets` items together that nobody holds: beta (h - rq)/(p - q) for r targets, of which one
    report supports at most h. h is r, or the size of a report if that is fixed and less. `unseen`
    is the most that at most 20 of these gain while no test of the stored reports sees an attack.
    `safe_lead` is the least lead, as a frequency, whose certificate they cannot prevent; None if no
    lead is safe. `least_change` is the least rise of an item between two such rounds that is seen
    in 80 %; None if no rise is. `attacker_success_rate` is the probability that whoever sees a
    report guesses its user's item; a blind guess has 1/d.
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
    stored_bytes: int | None = None
    retention: str | None = None
    targets: int | None = None
    beta: float | None = None
    gain: float | None = None
    unseen: UnseenGain | None = None
    safe_lead: float | None = None
    least_change: float | None = None
    attacker_success_rate: float | None = None

    def __repr__(self) -> str:
        if self.reason is not None:
            return f"PlannedRound({self.protocol}: {self.reason})"
        return (
            f"PlannedRound({self.protocol}, {self.domain_size:,} items, {self.users:,} users, "
            f"epsilon {self.epsilon:.3g}, standard error {self.standard_error:.3g})"
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """What malicious users gain, what is safe from them, and what one report tells; or why the
        protocol has no solution.
        """
        if self.reason is not None:
            return (f"Not with {self.protocol}: {self.reason}.",)
        share = percent(self.beta or 0)
        items = "one target" if self.targets == 1 else f"{self.targets} targets together"
        gain = (
            f"With {self.protocol} {share} malicious users raise the estimates of {items} by up to "
            f"{points(self.gain or 0)} points."
        )
        lead = "No lead" if self.safe_lead is None else f"A lead of {points(self.safe_lead)} points"
        guess = (
            "Whoever sees one report guesses its user's item right in "
            f"{percent(self.attacker_success_rate or 0)} of cases; blind, in "
            f"{percent(1 / (self.domain_size or 1))}."
        )
        sentences = [gain, f"{lead} is safe from {share} malicious reports.", guess]
        if self.unseen is not None:
            sentences.insert(1, self.unseen.sentence("the tests of a verdict"))
        if self.retention == "none":
            sentences.append(
                f"The tally of {self.protocol} is the histogram of its reports, so no report need "
                "be stored: open the round with retention none."
            )
        return tuple(sentences)


@dataclass(frozen=True)
class Plan:
    """Every protocol's solution of a request: the best first, those without one last.

    `if_stored` is the best protocol where reports are stored anyway, "" if none has a solution.
    """

    request: PlanRequest
    rounds: tuple[PlannedRound, ...]
    if_stored: str = ""

    def __repr__(self) -> str:
        return f"Plan({', '.join(self.protocols)}; best {self.best})"

    @property
    def best(self) -> PlannedRound | None:
        """The best protocol's solution; None if no protocol has one."""
        first = self.rounds[0]
        return first if first.reason is None else None

    @cached_property
    def accuracy(self) -> Accuracy | None:
        """The accuracy of the best protocol's round; None if no protocol has a solution."""
        best = self.best
        names = [each.protocol for each in self.rounds if each.reason is None]
        if best is None:
            return None
        return accuracy(best.domain_size or 0, best.epsilon or 0.0, best.users or 0, names)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The best round and what its attackers gain; then why other protocols have no solution."""
        refusals = [sentence for each in self.rounds if each.reason for sentence in each.sentences]
        best = self.best
        if best is None:
            advice = "Allow a larger error or lead, a larger epsilon, or more users."
            return (f"No protocol meets the plan. {advice}", *refusals)
        k = self.request.sum_of
        estimate = "an estimate" if k == 1 else f"the sum of {k:,} estimates"
        error = (
            f"Take {best.protocol}: with {counted(best.users or 0, 'user')}, {best.domain_size:,} "
            f"items and epsilon {number(best.epsilon or 0)} the standard error of {estimate} is "
            f"{points(best.standard_error or 0)} points, so it is within ± "
            f"{points(best.margin or 0)} at 95 %; all estimates together are within ± "
            f"{points(best.margin_of_all or 0)}."
        )
        other = (
            f"Where reports are stored anyway, take {self.if_stored}: its attacked items can be "
            "named."
        )
        more = [] if self.if_stored == best.protocol else [other]
        change = (
            "no change of an item is seen."
            if best.least_change is None
            else f"a rise of an item by {points(best.least_change)} points is seen with "
            "probability .8."
        )
        assert best.epsilon is not None
        between = f"Between two such rounds {change} {repeats_sentence(best.epsilon)}"
        return (error, str(self.accuracy), between, *best.sentences, *more, *refusals)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan in the form of JSON."""
        expected = self.accuracy
        return {
            "solved": self.request.solved,
            "request": asdict(self.request),
            "accuracy": expected and asdict(expected) | {"sentence": str(expected)},
            "sentences": list(self.sentences),
            "protocols": [asdict(each) for each in self.rounds],
        }

    @property
    def protocols(self) -> tuple[str, ...]:
        """The names of the protocols, the best first."""
        return tuple(each.protocol for each in self.rounds)


def plan(request: PlanRequest, protocols: Iterable[str] | None = None) -> Plan:
    """Return each protocol's solution of a request; of all registered protocols unless given.

    `choosing.choose` orders the solutions, in the setting of the protocol that needs least. Raises
    ParameterError for an unknown protocol, and for an empty list.

        plan(PlanRequest(domain_size=102, epsilon=0.5, error=0.005)).best
    """
    names = list(dict.fromkeys(PROTOCOLS if protocols is None else protocols))
    if not names:
        raise ParameterError("protocols must name at least one")
    for name in names:
        frequency_oracle(name, 1.0, 2)  # raises for an unknown protocol
    rounds = [_round(request, name) for name in names]
    able = [each for each in rounds if each.reason is None]
    order, if_stored = {name: len(names) for name in names}, ""
    if able:
        least = min(able, key=_needs(request.solved))
        assert least.domain_size is not None
        assert least.epsilon is not None
        assert least.users is not None
        chosen = choose(
            least.domain_size, least.epsilon, least.users, [each.protocol for each in able]
        )
        order |= {each.oracle.protocol: place for place, each in enumerate(chosen.candidates)}
        if_stored = chosen.best_if_stored.oracle.protocol
    return Plan(request, tuple(sorted(rounds, key=lambda each: order[each.protocol])), if_stored)


@dataclass(frozen=True)
class FormPlan:
    """The best round of each question of a form, its accuracy, and what attackers gain there.

    Reports are stored. The errors are about all people, of whom some answer a question.

    `gain` of a round is what malicious users gain if nobody chooses which question they answer.
    `gains_chosen` are their gains if they all choose that one, of k: k/(1 + (k - 1) beta) times as
    large, because they are then a share k beta/(1 + (k - 1) beta) of those who answer it.
    """

    rounds: tuple[PlannedRound, ...]
    accuracies: tuple[Accuracy, ...]
    gains_chosen: tuple[float, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """The accuracy of each question, and what malicious users gain in the worst one."""
        chosen = max(self.gains_chosen)
        i = self.gains_chosen.index(chosen)
        by_ticket, *_ = self.rounds[i].sentences
        beta = self.rounds[i].beta or 0.0
        answers = beta / (beta + (1 - beta) / _NON_RESPONSE)
        gain = (
            f"Attackers gain most in question {i + 1}. {by_ticket.removesuffix('.')} if tickets "
            f"assign the questions. If they choose their own, it is up to {points(chosen)} points. "
            f"If one in {_NON_RESPONSE} honest tickets is used, {percent(beta)} of all tickets are "
            f"{percent(answers)} of the answers."
        )
        return (*map(str, self.accuracies), gain)


def plan_form(
    domain_sizes: Iterable[int],
    epsilon: float,
    users: int,
    *,
    beta: float = 0.05,
    targets: int | None = None,
) -> FormPlan:
    """Return the plan of a form whose questions have these numbers of items.

    `users // k` people answer each of the k questions, 1 to 50, with the whole epsilon. A share
    `beta` of all is malicious and raises `targets` items of a question, but never all of them; by
    default min(10, d/2). Raises ParameterError.

        plan_form([40, 12], 1.0, 100_000).gains_chosen
    """
    sizes = list(domain_sizes)
    k = check_whole("the number of questions", len(sizes), 1, 50)
    n = check_whole("users", users, k) // k

    def best(d: int) -> tuple[PlannedRound, Accuracy]:
        r = targets and min(targets, d - 1)
        request = PlanRequest(domain_size=d, users=n, epsilon=epsilon, targets=r, beta=beta)
        planned = plan(request)
        round = next(each for each in planned.rounds if each.protocol == planned.if_stored)
        expected = accuracy(d, epsilon, users, [round.protocol], questions=k)
        quantile = two_sided_quantile(_CONFIDENCE)
        of_all = replace(
            round,
            standard_error=expected.margin / quantile,
            margin=expected.margin,
            margin_of_all=expected.largest_margin * _quantile_of_all(d) / quantile,
        )
        return of_all, expected

    rounds, accuracies = zip(*map(best, sizes), strict=True)
    ratio = k / (1 + (k - 1) * beta)
    return FormPlan(rounds, accuracies, tuple(ratio * (each.gain or 0.0) for each in rounds))


def _quantile_of_all(d: int) -> float:
    """Return how many standard errors hold for all d items together."""
    return NormalDist().inv_cdf(1 - (1 - _CONFIDENCE) / (2 * d))


def _round(request: PlanRequest, protocol: str) -> PlannedRound:
    try:
        oracle, users = solve(request, protocol)
        standard_error = request.error_of(oracle, users)
    except ParameterError as error:
        return PlannedRound(protocol=protocol, own={}, reason=str(error))
    d, change = oracle.domain_size, request.least_change_of(oracle, users)
    r = min(request.targets_of(d), d - 1)
    costs = candidate(oracle, users, r)  # the gain is in units of beta
    beta = request.share if request.gain is None else min(1.0, request.gain / costs.gain)
    # The variance is linear in the frequency, so its maximum is at an end.
    largest = math.sqrt(max(float(oracle.variance(f, users)) for f in (0.0, 1.0)))

    return PlannedRound(
        protocol=protocol,
        own=oracle.own,
        domain_size=d,
        users=users,
        epsilon=oracle.epsilon,
        standard_error=standard_error,
        margin=two_sided_quantile(_CONFIDENCE) * standard_error,
        margin_of_all=_quantile_of_all(d) * largest,
        report_size=costs.report_size,
        hash_tests=costs.hash_tests,
        stored_bytes=costs.stored_bytes,
        retention=proposed_retention(oracle),
        targets=r,
        beta=beta,
        gain=beta * costs.gain,
        unseen=unseen_gain(oracle, users, min(r, ITEMS[-1]), beta),
        safe_lead=request.leads_of(oracle, users).least_safe(beta),
        least_change=None if change > 1 else change,
        attacker_success_rate=costs.attacker_success_rate,
    )


def _needs(solved: Unknown) -> Callable[[PlannedRound], float]:
    """Return the sort key of planned rounds by the solved field: the best first."""
    attribute = "standard_error" if solved == "error" else solved
    sign = -1 if solved == "domain_size" else 1  # more items are better, less of all else
    return lambda each: sign * float(getattr(each, attribute) or 0)
