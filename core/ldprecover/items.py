"""Item indices: checks, texts, and the conversion of labels into indices."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

from ldprecover.errors import ParameterError

if TYPE_CHECKING:
    from ldprecover.types import FloatArray, Int64Array

MAX_CANARIES = 100

_MOST_LABELS = 10
_SHOWN = 80  # characters of a label that a message repeats
_LONGEST = 1200  # characters of a label in any form; normalisation takes quadratic time

# Emoji whose default is text; those in the BMP whose default is a picture; and all but 0-9, # and *
# (Unicode, emoji-data.txt).
_TEXTS = (
    "©®‼⁉™\u2139↔-↙↩↪⌨⏏⏭-⏯⏱⏲⏸-⏺Ⓜ▪▫▶◀◻◼☀-☄☎☑☘☝☠☢☣☦☪☮☯☸-☺♀♂♟♠♣♥♦♨♻♾⚒⚔-⚗⚙⚛⚜⚠⚧⚰⚱⛈⛏⛑⛓⛩⛰⛱⛴⛷-⛹✂✈✉✌✍✏✒✔✖✝"
    "✡✳✴❄❇❣❤➡⤴⤵⬅-⬇〰〽㊗㊙🅰🅱🅾🅿🈂🈷🌡🌤-🌬🌶🍽🎖🎗🎙-🎛🎞🎟🏋-🏎🏔-🏟🏳🏵🏷🐿👁📽🕉🕊🕯🕰🕳-🕹🖇🖊-🖍🖐🖥🖨🖱🖲🖼🗂-🗄🗑-🗓🗜-🗞🗡🗣🗨🗯🗳🗺🛋🛍-🛏🛠-"
    "🛥🛩🛰🛳"
)
_PICTURES = (
    "⌚⌛⏩-⏬⏰⏳◽◾☔☕♈-♓♿⚓⚡⚪⚫⚽⚾⛄⛅⛎⛔⛪⛲⛳⛵⛺⛽✅✊✋✨❌❎❓-❕❗\u2795-➗➰➿"
    "⬛⬜⭐⭕"
)
_EMOJI = rf"[{_TEXTS}{_PICTURES}\U0001f000-\U0001faff]"

# Letters of Arabic, Syriac and N'Ko that join the next one; those that join the one before them
# (Unicode, ArabicShaping.txt); and viramas.
_JOINING = (
    r"[\u0620\u0626\u0628\u062a-\u062e\u0633-\u0647\u0649\u064a\u066e\u066f\u0678-\u0687"
    r"\u069a-\u06bf\u06c1\u06c2\u06cc\u06ce\u06d0\u06d1\u06fa-\u06fc\u06ff\u0712-\u0714"
    r"\u071a-\u0727\u0729\u072b\u072d\u072e\u074e-\u0758\u075c-\u077f\u07ca-\u07ea\u08a0-\u08c8]"
)
_JOINED = r"[\u0620\u0622-\u064a\u066e-\u06d3\u06d5\u06fa-\u06ff\u0710-\u077f\u07ca-\u08c8]"
_VIRAMA = r"[\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca\u1039\u17d2]"
_HAN = r"\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"

# Format characters, fillers, joiners, variation selectors and tags, but for these:
_INVISIBLE = (
    r"[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    r"\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e0fff]"
    # a joiner between emoji, and a selector of the presentation that is not an emoji's default;
    # a sequence of emoji is the same picture without
    rf"(?<!{_EMOJI}\u200d(?={_EMOJI}))(?<!{_EMOJI}\ufe0f\u200d(?={_EMOJI}))"
    rf"(?<!(?<!\u200d)[#*0-9{_TEXTS}]\ufe0f(?!\u200d{_EMOJI}|[\u20e3🏻-🏿]))"
    rf"(?<!(?![{_TEXTS}]){_EMOJI}\ufe0e)"
    # joiners beside a virama
    rf"(?<!{_VIRAMA}\u200d)(?<!{_VIRAMA}\u200c(?=\w))(?<![\u200c\u200d](?={_VIRAMA}))"
    # U+200C between letters that would join, U+200D where nothing joins
    + "".join(
        rf"(?<!{_JOINING}{marks}\u200c(?={_JOINED}))(?<!{_JOINING}{marks}\u200d(?!{_JOINED}))"
        for marks in ("", r"[\u064b-\u065f\u0670]", r"[\u064b-\u065f\u0670]{2}")
    )
    # variants of Mongolian, Myanmar, mathematical and Chinese characters
    + rf"(?<![\u1820-\u18aa][\u180b-\u180f])(?<![{_HAN}][\U000e0100-\U000e01ef])"
    rf"(?<![\u1000-\u109f\u2229-\u22ff\u2a00-\u2aff\u3001\u3002\uff01-\uff1f{_HAN}][\ufe00-\ufe02])"
    # the tags of a region's flag
     + "".join(rf"(?<!🏴[\U000e0030-\U000e007f]{{{n}}})" for n in range(1, 8))
)
_SPACES = r"[ \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u2800\u3000]+"
_REORDERING = (
    r"[\u0590-\u08ff\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufdff\ufe70-\ufefc"
    r"\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
_DIRECTIONS = r"[\u202a-\u202e\u2066-\u2069]"


def label_key(label: str) -> str:
    """Return the text that labels which look the same have in common, empty for a blank label.

    It is the label in NFC without format characters and variation selectors, each run of white
    space one space and none at the ends. A joiner or selector stays where it changes the glyph:
    within an emoji sequence, where it turns an emoji's default into text or a picture, beside a
    virama, and between letters that join or are kept from it (U+200C in Persian).
    """
    if not label.isascii() and len(label) <= _LONGEST:
        label = unicodedata.normalize("NFC", label)
        label = unicodedata.normalize("NFC", re.sub(_INVISIBLE, "", label))
    return re.sub(_SPACES, " ", label).strip(" ")


def label_indices(items: Sequence[str], labels: Iterable[object]) -> dict[str, int]:
    """Return the index of each item by its label, and by those of `labels` that look the same as
    one, up to the first that does not.
    """
    index = {label: i for i, label in enumerate(items)}
    keys: dict[str, int] = {}
    for label in labels:
        if isinstance(label, str) and label not in index:
            keys = keys or {label_key(label): i for label, i in index.items()}
            if (key := label_key(label)) not in keys:
                break
            index[label] = keys[key]
    return index


def isolated(label: str) -> str:
    """Return a label for a sentence: one with right-to-left characters is between U+2068 and
    U+2069, so that it does not reorder the text around it.
    """
    if not re.search(_REORDERING, label):
        return label
    return f"\u2068{re.sub(_DIRECTIONS, '', label)}\u2069"


def quoted(label: str) -> str:
    """Return a label for an error: quoted, cut after 80 characters, and isolated."""
    return isolated(repr(label[:_SHOWN]))


def whole(value: object) -> int | None:
    """Return an integer, also of numpy, as an int; None for any other value, and for a bool."""
    if type(value) is int:
        return value
    return None if isinstance(value, bool) or not isinstance(value, Integral) else int(value)


def target_indices(
    targets: Iterable[int], d: int | None, names: tuple[str, str] = ("target", "targets")
) -> tuple[int, ...]:
    """Return the targets sorted and once each; `names` is how a message calls one of them, and
    several.

    Raises ParameterError for what is not an index of the d items; d None leaves the number open.
    """
    if not isinstance(targets, Iterable):
        raise ParameterError(f"{names[1]} must be a list of indices, not {targets!r:.40}")
    indices = set()
    target: Any
    for target in targets:
        index = whole(target)
        if index is None or index < 0 or (d is not None and index >= d):
            allowed = "of at least 0" if d is None else f"from 0 to {d - 1}"
            raise ParameterError(
                f"every {names[0]} must be an integer {allowed}, not {isolated(f'{target!r:.40}')}"
            )
        indices.add(index)
    return tuple(sorted(indices))


def canary_indices(canaries: Iterable[int], d: int | None) -> tuple[int, ...]:
    """Return canaries sorted and without duplicates; d None leaves the number of items open.

    Raises ParameterError for an index outside the d items, for more than 100 canaries, and if fewer
    than two other items remain.
    """
    indices = target_indices(canaries, d, ("canary", "canaries"))
    if len(indices) > MAX_CANARIES:
        raise ParameterError(
            f"canaries must be at most {MAX_CANARIES} items, not {len(indices)}", field="canaries"
        )
    if d is not None and d - len(indices) < 2:
        raise ParameterError("canaries must leave at least two other items")
    return indices


def highest(frequencies: FloatArray, labels: Sequence[str] | None = None) -> str:
    """Return the five items of the highest frequencies as text: "item 3 12.90 %; item 0 8.12 %"."""
    return "; ".join(
        f"{f'item {i}' if labels is None else isolated(labels[i])} {100 * frequencies[i]:.2f} %"
        for i in largest(frequencies, 5).tolist()
    )


def largest(values: FloatArray, k: int) -> Int64Array:
    """Return the indices of the k largest values, largest first; of equal ones the first first."""
    return (-values).argsort(kind="stable")[:k]


def items_in_words(number: int) -> str:
    """Return a number of items as text: one item, 3 items."""
    return "one item" if number == 1 else f"{number} items"


def indices_named(items: Iterable[int]) -> str:
    """Return the text "item index 2" or "item indices 2, 5": a label may be a number too."""
    numbers = [str(item) for item in items]
    return f"item {'index' if len(numbers) == 1 else 'indices'} {', '.join(numbers)}"


def with_labels(text: str, labels: Sequence[str]) -> str:
    """Return a text with the labels of at most ten items in place of each `indices_named`.

    Example:
        >>> with_labels("Many reports share item indices 0, 2.", ["soup", "fish", "salad"])
        "Many reports share 'soup', 'salad'."
    """

    def labelled(match: re.Match[str]) -> str:
        indices = [int(number) for number in match[1].split(", ")]
        named = ", ".join(isolated(f"'{labels[i]}'") for i in indices[:_MOST_LABELS])
        more = len(indices) - _MOST_LABELS
        return named + (f" and {more} more" if more > 0 else "")

    return re.sub(r"item ind(?:ex|ices) (\d+(?:, \d+)*)", labelled, text)


def find_items(
    targets: Sequence[str | int], items: Sequence[str], field: str = "targets"
) -> list[int]:
    """Return the indices of targets, in their order: a str is a label of `items`, an int an index.

    `field` is how a message calls the targets. Raises ParameterError for an unknown label, and for
    an index outside the items.
    """
    if not targets:
        return []
    index = label_indices(items, targets)
    indices = []
    for target in targets:
        if isinstance(target, str):
            if target not in index:
                raise ParameterError(f"{field}: no item is labelled {quoted(target)}")
            indices.append(index[target])
        else:
            indices += target_indices([target], len(items), (f"index of {field}", field))
    return indices
