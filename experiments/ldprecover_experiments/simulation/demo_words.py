"""Titles and sentences for attacks and methods, and the formats of their figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ldprecover_attacker import ATTACKS

PROJECTION = "projection alone"
"""The poisoned estimate projected on the simplex (Norm-Sub), the baseline of every method."""

TOLD = " told the targets"
"""Ends the name of a method that is told the targets."""

_LISTED = 4


@dataclass(frozen=True)
class AttackWords:
    """A short title, and sentences: what malicious users send, what for, what they must know."""

    title: str
    sentence: str


_ATTACKS: Mapping[str, AttackWords] = {
    "aa": AttackWords(
        "pull towards random frequencies",
        "Malicious users send items drawn from a random distribution, to pull all estimates "
        "towards it. The attacker needs to know nothing.",
    ),
    "apa": AttackWords(
        "raise targets, in honest sizes",
        "Malicious users each support a random part of the targets, in reports as long as honest "
        "ones, to raise the targets unseen. The attacker needs to know the targets.",
    ),
    "apa2": AttackWords(
        "raise targets, by coins",
        "Malicious users toss a coin for each target in otherwise honest reports, to raise the "
        "targets without a pattern. The attacker needs to know the targets.",
    ),
    "cancel": AttackWords(
        "raise targets, with no pairs of them",
        "Malicious users each support a random part of the targets, of one of two sizes, so that "
        "pairs of targets go together as by chance. The attacker needs to know the targets.",
    ),
    "joint": AttackWords(
        "frame targets as attacked",
        "Malicious users support all targets together or none of them, to have a recovery take "
        "them for attacked and lower them. The attacker needs to know the most popular items.",
    ),
    "manip": AttackWords(
        "distort all items",
        "Malicious users send items of a secret random half of all items, to distort every "
        "estimate. The attacker needs to know nothing.",
    ),
    "mga": AttackWords(
        "raise targets as far as possible",
        "Malicious users send reports that support as many targets as one report can, to raise the "
        "targets as far as possible. The attacker needs to know the targets.",
    ),
    "mga-a": AttackWords(
        "raise targets, in random parts",
        "Malicious users each support a random part of the targets, to raise them without common "
        "sets of items. The attacker needs to know the targets.",
    ),
    "mimicry": AttackWords(
        "raise targets, undetectably",
        "Malicious users send what honest users who hold the targets more often would send, to "
        "raise the targets unseen by any test. The attacker needs a guess of the frequencies.",
    ),
    "mla": AttackWords(
        "largest error",
        "All malicious users send one and the same report, to make the error of all estimates as "
        "large as possible. The attacker needs to know nothing.",
    ),
    "ria": AttackWords(
        "raise targets, by lying about the item",
        "Malicious users claim a random target and follow the protocol, to raise the targets by "
        "reports like honest ones. The attacker needs to know the targets.",
    ),
    "rpa": AttackWords(
        "random noise",
        "Malicious users send any report at random, to add noise. The attacker needs to know "
        "nothing.",
    ),
}

_METHODS: Mapping[str, str] = {
    "ldprecover": "LDPRecover",
    "ldprecover*": f"LDPRecover{TOLD}",
    "norm-sub": PROJECTION,
    "unmix": "un-mixing",
}


def attack_words(name: str) -> AttackWords:
    """Return the words of an attack; for one of a plugin its docstring's first line."""
    if name in _ATTACKS:
        return _ATTACKS[name]
    return AttackWords(name, (ATTACKS[name].__doc__ or name).strip().splitlines()[0])


def method_words(name: str) -> str:
    """Return the title of a method, by default its name."""
    return _METHODS.get(name, name)


def times(ratio: float | None) -> str:
    """Return a ratio, such as 0.05, 1.3, 78 and 1,230; None is infinite."""
    if ratio is None:
        return "infinitely many"
    if ratio >= 9.95:
        return f"{ratio if ratio < 1000 else float(f'{ratio:.3g}'):,.0f}"
    return f"{ratio:.2g}" if ratio < 0.095 else f"{ratio:.{1 if ratio >= 0.995 else 2}f}"


def points(gain: float) -> str:
    """Return the size of a difference of frequencies, in percentage points."""
    return f"{times(100 * abs(gain))} percentage points"


def sentence(text: str) -> str:
    """Return the text with a capital letter."""
    return text[:1].upper() + text[1:]


def listed(names: Sequence[str]) -> str:
    """Return the first names as a list, and the number of the others."""
    if len(names) > _LISTED:
        return f"{', '.join(names[: _LISTED - 1])} and {len(names) - _LISTED + 1} others"
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
