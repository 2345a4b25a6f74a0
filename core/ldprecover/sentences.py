"""Numbers and labels within the sentences that results state about themselves."""

from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

from ldprecover.items import isolated

LABELS = 10
"""Items that one sentence names."""
NOISE = "The noise exceeds what tells the items apart"
"""The beginning of the note that noise hides the differences of the items."""
DOWN, UP = ROUND_FLOOR, ROUND_CEILING
"""How lower and upper ends are rounded: a sentence never states more than is proven."""


def is_noise(note: str) -> bool:
    """Return whether a note says that noise hides the differences of the items."""
    return note.startswith(NOISE)


def number(value: float | Decimal, rounding: str = ROUND_HALF_EVEN) -> str:
    """Return a number with three digits, those above 1,000 as whole numbers: 0.0123, 12,346."""
    exact = Decimal(str(value))
    digits = Decimal(1).scaleb(min(0, exact.adjusted() - 2))
    return f"{exact.quantize(digits, rounding).normalize() + 0:,f}"


def percent(share: float, rounding: str = ROUND_HALF_EVEN) -> str:
    """Return a share in percent, with three digits: 12.3 %."""
    return f"{points(share, rounding)} %"


def points(share: float, rounding: str = ROUND_HALF_EVEN) -> str:
    """Return a difference of shares in percentage points, with three digits and no unit."""
    return number(100 * Decimal(str(share)), rounding)


def repeats_sentence(epsilon: float, limit: float = 4.0) -> str:
    """Return how often the same people can answer, with a client's default limit of epsilon."""
    times = int(Decimal(str(limit)) // Decimal(str(epsilon)))  # as ledgers add up
    number = "once" if times == 1 else f"{times:,} times"
    if not times:
        return f"No client answers at epsilon {epsilon:g}: its limit is {limit:g} in all."
    return f"The same people can answer {number} at epsilon {epsilon:g}: {limit:g} in all."


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: 1 report, 2,000 reports."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(texts: Sequence[str], conjunction: str = "and", limit: int = LABELS) -> str:
    """Return the first labels, isolated, and how many more there are: a; b and 3 more.

    Semicolons separate them, because labels such as New York, NY have commas.
    """
    names = [isolated(text) for text in texts[:limit]]
    if len(texts) > limit:
        names.append(f"{len(texts) - limit:,} more")
    *others, last = names
    return f"{'; '.join(others)} {conjunction} {last}" if others else last


def proven_sentence(least: float) -> str:
    """Return the sentence on the share of malicious reports that a certificate proves."""
    return f"At least {percent(least, DOWN)} of the reports are malicious: the reports prove it."
