"""What a recovery method concludes of its errors and of the attack, in words for a terminal."""

from collections.abc import Iterator, Mapping
from typing import Any

from ldprecover_cli.output import counted

_SHOWN = 10  # suspects


def interval(concluded: Mapping[str, Any], item: int) -> str:
    """Return the 95 % interval of an item in percent; empty where the method gives none."""
    low, high = concluded.get("lower"), concluded.get("upper")
    return "" if low is None or high is None else f"{100 * low[item]:.2f} to {100 * high[item]:.2f}"


def sentences(concluded: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is concluded of the attack, in sentences; labels in them are a stranger's text."""
    if (probability := concluded.get("attack_probability")) is not None:
        share = ""
        if concluded.get("beta") is not None:
            share = f"; share of malicious reports that shows {_percent(concluded['beta'])}"
            if concluded.get("beta_low") is not None and concluded.get("beta_high") is not None:
                share += (
                    f" ({_percent(concluded['beta_low'])} to {_percent(concluded['beta_high'])})"
                )
        yield f"Probability of an attack: {probability:.2f}{share}."
    if suspected := concluded["suspects"]:
        named = ", ".join(
            f"{each['label']} ({each['probability']:.2f})" for each in suspected[:_SHOWN]
        )
        rest = f" and {len(suspected) - _SHOWN} more" if len(suspected) > _SHOWN else ""
        yield f"Raised by reports, with probability: {named}{rest}."
    for each in concluded["dropped"]:
        yield (
            f"Left out by the screen {each['screen']}: {counted(each['reports'], 'report')}, "
            f"{each['what']}."
        )
    if (weight := concluded.get("history_weight")) is not None:
        yield f"Probability that the earlier rounds are a guide to this one: {weight:.2f}."


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
