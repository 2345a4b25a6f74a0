"""The answers of a certificate as sentences; labels in them are untrusted text."""

from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import TYPE_CHECKING

from ldprecover.items import isolated

if TYPE_CHECKING:
    from ldprecover_interface.certificates import Answer, Certified, CertifiedMean

_LABELS = 10  # in a sentence


def sentences(certificate: "Certified") -> Iterator[str]:
    """Yield sentences: about the mean, the answers, and the proven share of malicious reports."""
    if mean := certificate.mean:
        yield f"The mean of the honest users' numbers is between {_ends(mean)}."
    for answer in certificate.answers:
        yield " ".join(_answer(answer, certificate))
    if least := certificate.least_malicious_share:
        yield f"The reports prove that at least {_percent(least, ROUND_FLOOR)} were forged."


def _answer(answer: "Answer", certificate: "Certified") -> Iterator[str]:
    labels = certificate.items
    least = answer.mean_above or answer.more_than or 0.0
    holds = answer.top is not None or (answer.estimate or 0.0) > least
    if answer.top is not None:
        first = _listed(answer.items, labels, "and")
        claim = f"{first} leads" if answer.top == 1 else f"The first {answer.top} are {first}"
    elif answer.ahead:
        item, other = answer.ahead
        claim = f"{isolated(labels[item])} is ahead of {isolated(labels[other])}"
    elif answer.mean_above is not None:
        claim = f"The mean is above {_number(answer.mean_above)}"
    else:
        users = f"of the honest users hold {_listed(answer.items, labels, 'or')}"
        yield f"Between {_ends(answer, ' %')} {users}."
        if not answer.more_than:
            return
        claim = f"More than {_percent(answer.more_than)} {users}"
    yield _proven(claim, answer, certificate, holds)


def _proven(claim: str, answer: "Answer", certificate: "Certified", holds: bool) -> str:
    """Return a claim with the share up to which it is proven; it `holds` among the estimates."""
    if answer.tolerance is not None:
        forged = f"{_percent(answer.tolerance, ROUND_FLOOR)} of all reports were forged"
        if answer.certified:
            return f"{claim}. That holds even if up to {forged}."
        share = _percent(certificate.malicious_share)
        return f"{claim} if at most {forged}, but this is not certain if {share} were."
    if not holds:
        return f"Not certified, and not so among the numbers as collected: {claim}."
    cause = "the noise of honest reports is"
    if certificate.least_malicious_share:
        cause = "the reports that are proven to be forged are"
    return (
        f"{claim} among the numbers as collected, but this is not certain: "
        f"{cause} enough to change it."
    )


def _ends(interval: "Answer | CertifiedMean", unit: str = "") -> str:
    scale = 100 if unit else 1
    low = _number(interval.lower or 0.0, ROUND_FLOOR, scale)
    return f"{low} and {_number(interval.upper or 0.0, ROUND_CEILING, scale)}{unit}"


def _percent(share: float, rounding: str = ROUND_HALF_EVEN) -> str:
    return f"{_number(share, rounding, 100)} %"


def _number(value: float, rounding: str = ROUND_HALF_EVEN, scale: int = 1) -> str:
    """Return a number with three digits."""
    rounded = Context(3, rounding).create_decimal(scale * Decimal(repr(value)))
    return f"{rounded.normalize() + 0:f}"


def _listed(items: Sequence[int], labels: Sequence[str], conjunction: str) -> str:
    """Return labels as text: a; b and c."""
    names = [isolated(labels[item]) for item in items[:_LABELS]]
    if len(items) > _LABELS:
        names.append(f"{len(items) - _LABELS} more")
    *others, last = names
    return f"{'; '.join(others)} {conjunction} {last}" if others else last
