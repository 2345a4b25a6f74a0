"""Items by index and by label."""

from typing import Any

import pytest

from ldprecover import ParameterError
from ldprecover.items import (
    find_items,
    indices_named,
    isolated,
    label_key,
    target_indices,
    with_labels,
)

ITEMS = ("a", "b", "1")


def test_indices_are_sorted_and_come_once() -> None:
    assert target_indices([4, 0, 4], 5) == (0, 4)
    assert target_indices([], 5) == ()


@pytest.mark.parametrize("targets", [[5], [-1], [True], [1.0], ["1"], 3])
def test_non_index_is_rejected(targets: object) -> None:
    with pytest.raises(ParameterError, match="target"):
        target_indices(targets, 5)  # type: ignore[arg-type]


def test_a_string_is_a_label_and_an_integer_an_index() -> None:
    assert find_items(["1", 1, "a", "1"], ITEMS) == [2, 1, 0, 2]


def test_a_label_in_another_form_is_the_item() -> None:
    """One that is an item's own label is that item, also beside one that looks the same."""
    items = ("caf\u00e9", "soup", "e\u0301", "\u00e9")
    targets = ["cafe\u0301", "so\u00adup", "\u00e9", "e\u0301", " soup\u00a0"]
    assert find_items(targets, items) == [0, 1, 3, 2, 1]


def test_a_text_longer_than_any_form_of_a_label_is_its_own_key() -> None:
    marks = 20_000 * "\u0323\u0301"  # a minute of normalisation
    assert label_key("a" + marks) == "a" + marks
    assert label_key("a" + 1199 * "\u200b") == "a"


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("soup\u00e9", "soup\u00e9"),
        ("\u05de\u05e8\u05e7!", "\u2068\u05de\u05e8\u05e7!\u2069"),
        ("\u0634 (1)", "\u2068\u0634 (1)\u2069"),
        ("a\u2069\u202eb", "\u2068ab\u2069"),
    ],
)
def test_only_right_to_left_labels_are_isolated(label: str, shown: str) -> None:
    assert isolated(label) == shown


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("c", "no item is labelled 'c'"),
        ("\u05d0", "no item is labelled \u2068'\u05d0'\u2069"),
        (3, "every index of targets must be an integer from 0 to 2, not 3"),
        (-1, "from 0 to 2, not -1"),
        (None, "every index of targets must be"),
        (b"a", "every index of targets must be"),
        (1.0, "every index of targets must be"),
    ],
)
def test_unknown_item_is_rejected(target: Any, reason: str) -> None:
    with pytest.raises(ParameterError, match=reason):
        find_items([0, target], ITEMS)


@pytest.mark.parametrize(
    ("items", "named"),
    [
        ([1], "'b, c'"),
        ([0, 2], "'item index 1', 'd'"),
        ([1, 3], "'b, c', \u2068'\u05d0'\u2069"),
        (
            [*range(3), *[0] * 9],
            ", ".join(["'item index 1', 'b, c', 'd'", *["'item index 1'"] * 7]),
        ),
    ],
)
def test_texts_name_items_by_label(items: list[int], named: str) -> None:
    more = " and 2 more" if len(items) > 10 else ""
    text = f"{indices_named(items)}, of index 7."
    assert (
        with_labels(text, ["item index 1", "b, c", "d", "\u05d0"]) == f"{named}{more}, of index 7."
    )
