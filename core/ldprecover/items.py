"""Item indices: checks, texts, and the conversion of labels into indices."""

import operator
import re
from collections.abc import Iterable, Sequence

from ldprecover.errors import ParameterError
from ldprecover.types import FloatArray

MAX_CANARIES = 100

_MOST_LABELS = 10
_SHOWN = 80  # characters of a label that a message repeats


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
    for target in targets:
        try:
            index = operator.index(target)
        except TypeError:
            index = -1
        if isinstance(target, bool) or index < 0 or (d is not None and index >= d):
            allowed = "of at least 0" if d is None else f"from 0 to {d - 1}"
            raise ParameterError(
                f"every {names[0]} must be an integer {allowed}, not {target!r:.40}"
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
        raise ParameterError(f"canaries must be at most {MAX_CANARIES}, not {len(indices)}")
    if d is not None and d - len(indices) < 2:
        raise ParameterError("canaries must leave at least two other items")
    return indices


def highest(frequencies: FloatArray, labels: Sequence[str] | None = None) -> str:
    """Return the five items of the highest frequencies as text: "item 3 12.90 %; item 0 8.12 %"."""
    indices = (-frequencies).argsort(kind="stable")[:5].tolist()
    return "; ".join(
        f"{f'item {i}' if labels is None else labels[i]} {100 * frequencies[i]:.2f} %"
        for i in indices
    )


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
        named = ", ".join(f"'{labels[i]}'" for i in indices[:_MOST_LABELS])
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
    index = {label: i for i, label in enumerate(items)}
    indices = []
    for target in targets:
        if isinstance(target, str):
            if target not in index:
                raise ParameterError(f"{field}: no item is labelled {target[:_SHOWN]!r}")
            indices.append(index[target])
        else:
            if not 0 <= target < len(items):
                raise ParameterError(
                    f"{field}: {target} is not an index from 0 to {len(items) - 1}"
                )
            indices.append(target)
    return indices
