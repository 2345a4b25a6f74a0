"""The conclusions of a recovery method about its errors and the attack, as sentences."""

from collections.abc import Iterator, Mapping
from typing import Any

from ldprecover_cli.output import counted, percent

_MAX_SUSPECTS = 10  # in a sentence


def interval(conclusions: Mapping[str, Any], item: int) -> str:
    """Return the 95 % interval of an item in percent; empty if the method gives none."""
    low, high = conclusions.get("lower"), conclusions.get("upper")
    return "" if low is None or high is None else f"{100 * low[item]:.2f} to {100 * high[item]:.2f}"


def sentences(conclusions: Mapping[str, Any]) -> Iterator[str]:
    """Yield sentences about the attack; labels in them are untrusted text."""
    if (probability := conclusions.get("attack_probability")) is not None:
        share = ""
        if (beta := conclusions.get("beta")) is not None:
            share = f"; visible share of malicious reports: about {percent(beta)}"
            low, high = conclusions.get("beta_low"), conclusions.get("beta_high")
            if low is not None and high is not None:
                share += f" ({percent(low)} to {percent(high)})"
        yield f"Probability of an attack: {percent(probability)}{share}."
    if suspects := conclusions["suspects"]:
        names = ", ".join(
            f"{row['label']} ({percent(row['probability'])})" for row in suspects[:_MAX_SUSPECTS]
        )
        others = (
            f" and {len(suspects) - _MAX_SUSPECTS} more" if len(suspects) > _MAX_SUSPECTS else ""
        )
        yield f"Suspects, with the probability that reports raised them: {names}{others}."
    for row in conclusions["dropped"]:
        yield (
            f"Left out by the filter {row['screen']}: {counted(row['reports'], 'report')}, "
            f"{row['what']}."
        )
    if (weight := conclusions.get("history_weight")) is not None:
        yield f"Probability that the earlier rounds predict this one: {percent(weight)}."
