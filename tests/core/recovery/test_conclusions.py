"""The conclusions about an attack from a method, a proof and alarms."""

from typing import Any

import pytest

from ldprecover.evidence.unseen import UnseenGain
from ldprecover.recovery.conclusions import (
    ALIKE,
    SHARED,
    Attack,
    Conclusions,
    Dropped,
    attack_sentences,
    attack_word,
)
from ldprecover.sentences import NOISE


@pytest.mark.parametrize(
    ("concluded", "proven", "has_alarm", "word"),
    [
        (None, 0.0, False, "cannot_be_seen"),
        ("cannot_be_seen", 0.0, False, "cannot_be_seen"),
        ("none_seen", 0.0, False, "none_seen"),
        (None, 0.0, True, "possible"),
        ("none_seen", 1e-6, False, "possible"),
        ("cannot_be_seen", 0.0, True, "possible"),
        ("possible", 0.0999, True, "possible"),
        ("near_certain", 0.0, False, "near_certain"),
        (None, 0.1, False, "near_certain"),
        ("cannot_be_seen", 0.5, True, "near_certain"),
    ],
)
def test_conclusion_proof_and_alarms_choose_the_word(
    concluded: Attack | None, proven: float, has_alarm: bool, word: str
) -> None:
    assert attack_word(concluded, proven=proven, has_alarm=has_alarm) == word


CERTIFIED = "Decide only by what a certificate proves."
TICKETS = "Tickets in the next round keep malicious users out."
UNSEEN_GAINS = [UnseenGain(items, 0.05, 0.95, 1.0) for items in (10, 20)]
UNSEEN = "Lies told honestly and mimicry stay unseen."


@pytest.mark.parametrize(
    ("attack", "raised", "fields", "finding", "advice"),
    [
        (
            *("near_certain", "abcde", {"probability": 0.9, "beta": 0.0519}),
            (
                "Near certain attack: at least 5.19 % of the reports are malicious and raise a; b; "
                "c and 2 more."
            ),
            (
                "Use the best estimate, not the numbers as collected, and do not rely on the "
                f"raised items. {TICKETS}"
            ),
        ),
        (
            *("near_certain", "", {"probability": 0.99, "beta": 0.0009}),
            "Near certain attack: some of the reports are malicious.",
            f"Use the best estimate, not the numbers as collected. {TICKETS}",
        ),
        (
            *("near_certain", "", {"probability": 0.99, "beta": 0.5, "proven": 0.98765}),
            "Near certain attack: at least 98.7 % of the reports are malicious.",
            f"Use the best estimate, not the numbers as collected. {TICKETS}",
        ),
        (
            *("possible", "\u05d0", {"probability": 0.5, "beta": 0.01, "proven": 0.02}),
            (
                "At least 2 % of the reports are malicious: the reports prove it. They may raise "
                "\u2068\u05d0\u2069."
            ),
            f"{CERTIFIED} {TICKETS}",
        ),
        (
            *("possible", "ab", {"beta": 0.01}),
            "An attack is possible: malicious reports may raise a and b.",
            "Do not decide by the raised items. A next round with tickets would tell.",
        ),
        (
            *("possible", "", {"notes": ["noted", f"{ALIKE}: so."]}),
            f"An attack is possible: some reports may be malicious. {ALIKE}: so.",
            f"{CERTIFIED} A next round with tickets would tell.",
        ),
        (
            *("near_certain", "", {"notes": [f"{SHARED} a, b."]}),
            f"Near certain attack: some of the reports are malicious. {SHARED} a, b.",
            f"Use the best estimate, not the numbers as collected. {TICKETS}",
        ),
        (
            *("none_seen", "", {}),
            "No attack of a visible kind seen: the reports look like those of honest users.",
            "You can use the best estimate.",
        ),
        (
            *("none_seen", "", {"notes": [f"{NOISE}: noise 3 points, spread 2 points."]}),
            (
                "Too few reports to rank the items. No attack of a visible kind seen: the reports "
                "look like those of honest users."
            ),
            "Collect more reports before you compare items.",
        ),
        (
            *("cannot_be_seen", "", {"probability": 0.1, "unseen": UNSEEN_GAINS}),
            f"The reports of this round could not show an attack. {UNSEEN_GAINS[0].sentence()}",
            f"{CERTIFIED} {TICKETS}",
        ),
    ],
)
def test_attack_is_a_finding_and_advice(
    attack: Attack, raised: str, fields: dict[str, Any], finding: str, advice: str
) -> None:
    evidence: dict[str, Any] = {"probability": None, "beta": None} | fields
    assert attack_sentences(attack, raised, **evidence) == [finding, f"{advice} {UNSEEN}"]


def test_every_conclusion_has_a_sentence() -> None:
    conclusions = Conclusions(
        attack="near_certain",
        attack_probability=0.9979,
        beta=0.05,
        suspects=tuple((item, 0.9) for item in range(12)),
        dropped=(Dropped("sizes", "reports of rare sizes", 1),),
        history_weight=0.5,
    )
    labels = [f"\u05d0{item}" for item in range(12)]
    finding, _, *others = conclusions.sentences(labels)
    assert finding.startswith("Near certain attack: at least 5 % of the reports")
    assert others == [
        "Probability of a visible attack: 99.7 %.",
        "Suspects, with the probability that reports raised them: "
        + "; ".join(f"\u2068{label}\u2069 (90 %)" for label in labels[:10])
        + "; and 2 more.",
        "Left out by the filter sizes: reports of rare sizes (1 report).",
        "Probability that the earlier rounds predict this one: 50 %.",
    ]
    assert Conclusions().sentences(labels) == []
