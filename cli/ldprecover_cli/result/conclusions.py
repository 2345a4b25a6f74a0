"""The conclusions of a recovery method about its errors and the attack, as sentences."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldprecover.items import isolated
from ldprecover_cli.output import counted, percent

if TYPE_CHECKING:
    from ldprecover_interface.results import Conclusions

_MAX_SUSPECTS = 10  # in a sentence


def sentences(conclusions: "Conclusions") -> Iterator[str]:
    """Yield sentences about the attack; labels in them are untrusted text."""
    if (probability := conclusions.attack_probability) is not None:
        share = ""
        if (beta := conclusions.beta) is not None:
            share = f"; visible share of malicious reports: about {percent(beta)}"
            low, high = conclusions.beta_low, conclusions.beta_high
            if low is not None and high is not None:
                share += f" ({percent(low)} to {percent(high)})"
        yield f"Probability of an attack: {percent(probability)}{share}."
    if suspects := conclusions.suspects:
        names = ", ".join(
            f"{isolated(row.label)} ({percent(row.probability)})"
            for row in suspects[:_MAX_SUSPECTS]
        )
        others = (
            f" and {len(suspects) - _MAX_SUSPECTS} more" if len(suspects) > _MAX_SUSPECTS else ""
        )
        yield f"Suspects, with the probability that reports raised them: {names}{others}."
    for row in conclusions.dropped:
        yield (
            f"Left out by the filter {row.screen}: {counted(row.reports, 'report')}, {row.what}."
        )
    if (weight := conclusions.history_weight) is not None:
        yield f"Probability that the earlier rounds predict this one: {percent(weight)}."
