"""The conclusions of a recovery method about its errors and the attack, as sentences."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldprecover.items import isolated
from ldprecover.sentences import counted
from ldprecover_cli.output import percent

if TYPE_CHECKING:
    from ldprecover_interface.results import Conclusions

_MAX_SUSPECTS = 10  # in a sentence


def attack_text(attack: str) -> str:
    """Return a conclusion about an attack as sentences, with what no conclusion is about."""
    hint = (
        " The reports of this round could not show an attack: `ldprecover result certify "
        "--malicious-share 0.05` says what 5 % of fake reports could do at most."
        if attack == "cannot_be_seen"
        else ""
    )
    word = attack.replace("_", " ")
    return f"Attack: {word}.{hint} Lies told honestly and mimicry stay unseen."


def sentences(conclusions: "Conclusions") -> Iterator[str]:
    """Yield sentences about the attack; labels in them are untrusted text."""
    if conclusions.attack is not None:
        yield attack_text(conclusions.attack)
    if (probability := conclusions.attack_probability) is not None:
        share = ""
        if beta := conclusions.beta:
            share = f"; share of malicious reports: at least {percent(beta)}"
        yield f"Probability of a visible attack: {percent(probability)}{share}."
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
