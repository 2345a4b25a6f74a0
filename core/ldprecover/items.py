"""From the items that somebody names, by index or label, to indices."""

import operator
from collections.abc import Iterable, Sequence

from ldprecover.errors import ParameterError

__all__ = ["find_items", "items_in_words", "target_indices"]

_SHOWN = 80  # characters of a label that a message repeats


def target_indices(targets: Iterable[int], d: int, what: tuple[str, str] = ("target", "targets")) -> tuple[int, ...]:
    """Return the targets sorted and once each; `what` is how a message calls one of them, and several.

    Raises ParameterError for no target, and for an index outside the d items.
    """
    if not isinstance(targets, Iterable):
        raise ParameterError(f"{what[1]} must be a list of indices, not {targets!r:.40}")
    indices = set()
    for target in targets:
        try:
            index = operator.index(target)
        except TypeError:
            index = -1
        if isinstance(target, bool) or not 0 <= index < d:
            raise ParameterError(f"every {what[0]} must be an integer from 0 to {d - 1}, not {target!r:.40}")
        indices.add(index)
    return tuple(sorted(indices))


def items_in_words(number: int) -> str:
    """Return a number of items as a sentence has it: one item, 3 items."""
    return "one item" if number == 1 else f"{number} items"


def find_items(targets: Sequence[str | int], items: Sequence[str]) -> list[int]:
    """Return the indices of targets, in their order: a str is always a label of `items`, an int an index.

    Raises ParameterError for a label that no item has, and for an index outside.
    """
    if not targets:
        return []
    index = {label: i for i, label in enumerate(items)}
    found = []
    for target in targets:
        if isinstance(target, str):
            if target not in index:
                raise ParameterError(f"targets: no item is labelled {target[:_SHOWN]!r}")
            found.append(index[target])
        else:
            if not 0 <= target < len(items):
                raise ParameterError(f"targets: {target} is not an index from 0 to {len(items) - 1}")
            found.append(target)
    return found
