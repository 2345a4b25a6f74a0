"""Conclusions of a recovery method beside the frequencies: their errors, and the attack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ldprecover.items import with_labels
from ldprecover.types import FloatArray

Attack = Literal["none_seen", "cannot_be_seen", "possible", "near_certain"]
"""Conclusions about an attack. Where the reports could not show one, it cannot be seen."""

NEAR_CERTAIN = 0.9
"""Least probability of a near certain attack."""

NEAR_CERTAIN_SHARE = 0.1
"""Least proven malicious share of a near certain attack.

Of 136,220 simulated honest rounds 25 had such a share, and 122 any share at all: seven protocols, 2
to 102 items, 1 to 10,000 reports, epsilon .5 to 4.
"""


def attack_word(concluded: Attack | None, *, proven: float, has_alarm: bool) -> Attack:
    """Return the conclusion about an attack from that of a method, None from one without any.

    `proven` is the share of malicious reports that a certificate proves. Any makes an attack
    possible, as an alarm does; a large one makes it near certain.
    """
    if concluded == "near_certain" or proven >= NEAR_CERTAIN_SHARE:
        return "near_certain"
    if concluded == "possible" or proven > 0 or has_alarm:
        return "possible"
    return concluded or "cannot_be_seen"


@dataclass(frozen=True)
class Dropped:
    """Reports that a filter dropped: its name, a description of them, and their number."""

    screen: str
    what: str  # phrases: quoted (a field of the JSON form)
    reports: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Conclusions:
    """The errors of a result and findings on the attack. What a method cannot state is None or ().

    Vectors have one entry for each of the d items. `standard_deviations` are those of the recovered
    frequencies; `lower` and `upper` are the ends of intervals that hold 95 % of the frequencies.
    `attack` says what the reports tell of an attack, and `attack_probability` is the probability of
    a visible one. `beta` is the least share of malicious reports among all that shows; the whole
    share may be larger.
    `suspects` are items that too many reports share, or whose estimates stand out, with the
    probability that reports raised them, the highest first. Innocent items can be among them.
    `dropped` are the reports left out. `history_weight` is the probability that the earlier rounds
    are a guide to this one, None without earlier rounds.
    """

    standard_deviations: FloatArray | None = None
    lower: FloatArray | None = None
    upper: FloatArray | None = None
    attack: Attack | None = None
    attack_probability: float | None = None
    beta: float | None = None
    suspects: tuple[tuple[int, float], ...] = ()
    dropped: tuple[Dropped, ...] = ()
    history_weight: float | None = None

    def __repr__(self) -> str:
        parts: list[str] = [] if self.attack is None else [self.attack]
        if self.beta:
            parts.append(f"at least {100 * self.beta:.1f} % malicious")
        dropped = sum(each.reports for each in self.dropped)
        parts += [f"{len(self.suspects):,} suspects", f"{dropped:,} reports dropped"]
        return f"Conclusions({', '.join(parts)})"

    def to_dict(self, labels: Sequence[str]) -> dict[str, Any]:
        """Return the JSON form: vectors as lists, suspects with item, label and probability."""
        vectors = ("standard_deviations", "lower", "upper")
        return {
            **vars(self),
            **{name: v.tolist() for name in vectors if (v := getattr(self, name)) is not None},
            "suspects": [
                {"item": item, "label": labels[item], "probability": probability}
                for item, probability in self.suspects
            ],
            "dropped": [
                {**asdict(each), "what": with_labels(each.what, labels)} for each in self.dropped
            ],
        }
