"""Conclusions of a recovery method beside the frequencies: their errors, and the attack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ldprecover.evidence.unseen import UnseenGain
from ldprecover.items import isolated, with_labels
from ldprecover.sentences import (
    DOWN,
    LABELS,
    counted,
    is_noise,
    listed,
    percent,
    proven_sentence,
)
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


ALIKE = "The frequent reports support many items alike"
"""The beginning of the note that no item is named."""
SHARED = "Malicious reports share"
"""The beginning of the note on items that are raised or framed."""

_RAISED = 3  # labels in the sentence on an attack
_LEAST_SHARE = 0.001  # no smaller one is named


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


def attack_sentences(
    attack: Attack,
    raised: Sequence[str],
    *,
    probability: float | None,
    beta: float | None,
    proven: float = 0.0,
    unseen: Sequence[UnseenGain] = (),
    notes: Sequence[str] = (),
) -> list[str]:
    """Return two texts: what a round shows of an attack, and what to do about it.

    `raised` are the labels of items that reports raised, `beta` is the least malicious share among
    all that shows and `proven` the share that a certificate proves. The first of the `unseen` gains
    is named where no attack is seen. Notes of the recovery on the noise, or on items that cannot be
    told apart, come with the first text.
    """
    items = listed(raised, limit=_RAISED) if raised else ""
    share = max(beta or 0.0, proven)
    certified = "Decide only by what a certificate proves."
    tickets = "Tickets in the next round keep malicious users out."
    is_blurred = any(map(is_noise, notes))
    if proven > (beta or 0.0) and (probability or 0.0) < NEAR_CERTAIN:
        finding = f"{proven_sentence(proven)}{f' They may raise {items}.' if items else ''}"
        advice = f"{certified} {tickets}"
    elif attack == "near_certain":
        malicious = "some" if share < _LEAST_SHARE else f"at least {percent(share, DOWN)}"
        raise_items = f" and raise {items}" if items else ""
        finding = f"Near certain attack: {malicious} of the reports are malicious{raise_items}."
        doubt = ", and do not rely on the raised items" if items else ""
        advice = f"Use the best estimate, not the numbers as collected{doubt}. {tickets}"
    elif attack == "possible":
        finding = "An attack is possible: some reports may be malicious."
        if items:
            finding = f"An attack is possible: malicious reports may raise {items}."
        doubt = "Do not decide by the raised items." if items else certified
        advice = f"{doubt} A next round with tickets would tell."
    elif attack == "none_seen":
        finding = "No attack of a visible kind seen: the reports look like those of honest users."
        advice = "You can use the best estimate."
        if is_blurred:
            advice = "Collect more reports before you compare items."
    else:
        finding = "The reports of this round could not show an attack."
        advice = f"{certified} {tickets}"
    if attack in ("none_seen", "cannot_be_seen"):
        finding = " ".join([finding, *(each.sentence() for each in unseen[:1])])
    if is_blurred:
        finding = f"Too few reports to rank the items. {finding}"
    if not items:
        finding = " ".join([finding, *(note for note in notes if note.startswith((ALIKE, SHARED)))])
    return [finding, f"{advice} Lies told honestly and mimicry stay unseen."]


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
    a visible one. `unseen` are the largest gains of attacks that the tests do not see, of ten items
    first. `beta` is the least share of malicious reports among all that shows; the whole share may
    be larger.
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
    unseen: tuple[UnseenGain, ...] = ()
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

    def sentences(self, labels: Sequence[str], notes: Sequence[str] = ()) -> list[str]:
        """Return the conclusions as texts; the first two are on an attack, unless it is None.

        `notes` are those of the recovery.
        """
        texts = []
        if self.attack is not None:
            raised = [labels[item] for item, _ in self.suspects]
            texts = attack_sentences(
                self.attack,
                raised,
                probability=self.attack_probability,
                beta=self.beta,
                unseen=self.unseen,
                notes=notes,
            )
        if self.attack_probability is not None:
            probability = percent(self.attack_probability, DOWN)
            texts.append(f"Probability of a visible attack: {probability}.")
        if self.suspects:
            names = [
                f"{isolated(labels[i])} ({percent(p, DOWN)})" for i, p in self.suspects[:LABELS]
            ]
            if (more := len(self.suspects) - LABELS) > 0:
                names.append(f"and {more:,} more")
            texts.append(
                f"Suspects, with the probability that reports raised them: {'; '.join(names)}."
            )
        for each in self.dropped:
            reports = f"{with_labels(each.what, labels)} ({counted(each.reports, 'report')})"
            texts.append(f"Left out by the filter {each.screen}: {reports}.")
        if self.history_weight is not None:
            share = percent(self.history_weight)
            texts.append(f"Probability that the earlier rounds predict this one: {share}.")
        return texts

    def to_dict(self, labels: Sequence[str], notes: Sequence[str] = ()) -> dict[str, Any]:
        """Return the JSON form: vectors as lists, suspects with item, label and probability.

        `notes` are those of the recovery.
        """
        vectors = ("standard_deviations", "lower", "upper")
        return {
            **vars(self),
            **{name: v.tolist() for name in vectors if (v := getattr(self, name)) is not None},
            "unseen": [asdict(each) for each in self.unseen],
            "suspects": [
                {"item": item, "label": labels[item], "probability": probability}
                for item, probability in self.suspects
            ],
            "dropped": [
                {**asdict(each), "what": with_labels(each.what, labels)} for each in self.dropped
            ],
            "sentences": self.sentences(labels, notes),
        }
