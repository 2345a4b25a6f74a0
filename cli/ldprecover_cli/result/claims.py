"""The answers of a certificate as sentences; labels in them are untrusted text."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Any

_LABELS = 10  # in a sentence


def sentences(certificate: Mapping[str, Any]) -> Iterator[str]:
    """Yield sentences: about the mean, the answers, and the proven share of malicious reports."""
    if mean := certificate.get("mean"):
        yield f"The mean of the honest users' numbers is between {_ends(mean)}."
    for answer in certificate["answers"]:
        yield " ".join(_answer(answer, certificate))
    if least := certificate["least_malicious_share"]:
        yield f"The reports prove that at least {_percent(least, ROUND_FLOOR)} were forged."


def _answer(answer: Mapping[str, Any], certificate: Mapping[str, Any]) -> Iterator[str]:
    labels, more_than = certificate["items"], answer.get("more_than")
    holds = answer.get("estimate", 1.0) > (more_than or answer.get("mean_above", 0.0))
    if "top" in answer:
        first = _listed(answer["items"], labels, "and")
        claim = f"{first} leads" if answer["top"] == 1 else f"The first {answer['top']} are {first}"
    elif "ahead" in answer:
        item, other = answer["ahead"]
        claim = f"{labels[item]} is ahead of {labels[other]}"
    elif "mean_above" in answer:
        claim = f"The mean is above {_number(answer['mean_above'])}"
    else:
        users = f"of the honest users hold {_listed(answer['items'], labels, 'or')}"
        yield f"Between {_ends(answer, ' %')} {users}."
        if not more_than:
            return
        claim = f"More than {_percent(more_than)} {users}"
    yield _proven(claim, answer, certificate, holds)


def _proven(
    claim: str, answer: Mapping[str, Any], certificate: Mapping[str, Any], holds: bool
) -> str:
    """Return a claim with the share up to which it is proven; it `holds` among the estimates."""
    tolerance = answer["tolerance"]
    if tolerance is not None:
        tolerance = f"{_percent(tolerance, ROUND_FLOOR)} of all reports were forged"
    if answer["certified"]:
        return f"{claim}. That holds even if up to {tolerance}."
    if tolerance:
        share = _percent(certificate["malicious_share"])
        return f"{claim} if at most {tolerance}, but this is not certain if {share} were."
    if not holds:
        return f"Not certified, and not so among the numbers as collected: {claim}."
    cause = "the noise of honest reports is"
    if certificate["least_malicious_share"]:
        cause = "the reports that are proven to be forged are"
    return (
        f"{claim} among the numbers as collected, but this is not certain: "
        f"{cause} enough to change it."
    )


def _ends(interval: Mapping[str, Any], unit: str = "") -> str:
    scale = 100 if unit else 1
    low = _number(interval["lower"], ROUND_FLOOR, scale)
    return f"{low} and {_number(interval['upper'], ROUND_CEILING, scale)}{unit}"


def _percent(share: float, rounding: str = ROUND_HALF_EVEN) -> str:
    return f"{_number(share, rounding, 100)} %"


def _number(value: float, rounding: str = ROUND_HALF_EVEN, scale: int = 1) -> str:
    """Return a number with three digits."""
    rounded = Context(3, rounding).create_decimal(scale * Decimal(repr(value)))
    return f"{rounded.normalize() + 0:f}"


def _listed(items: Sequence[int], labels: Sequence[str], conjunction: str) -> str:
    """Return labels as text: a; b and c."""
    names = [labels[item] for item in items[:_LABELS]]
    if len(items) > _LABELS:
        names.append(f"{len(items) - _LABELS} more")
    *others, last = names
    return f"{'; '.join(others)} {conjunction} {last}" if others else last
