"""The immutable parameters of a round, and the digest that clients and servers compare."""

from typing import Any

import pytest

from ldprecover import ParameterError, RoundParameters


def test_olhs_hash_range_is_fixed_when_the_round_is_made() -> None:
    assert RoundParameters("olh", 0.5, ("a", "b")).parameter == 3
    assert RoundParameters("oue", 0.5, ("a", "b")).parameter is None


def test_parameters_are_equal_for_any_label_sequence() -> None:
    of_list = RoundParameters("grr", 1, ["a", "b"])  # type: ignore[arg-type]
    of_tuple = RoundParameters("grr", 1.0, ("a", "b"))
    assert of_list == of_tuple
    assert hash(of_list) == hash(of_tuple)


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        (("b", "a", "a"), "items must be distinct, and 'a' is item 1 and item 2"),
        (("a", ""), "non-empty string; item 1 is not"),
        ((1, 2), "non-empty string; item 0 is not"),
        (("a",), "items must be at least two, not 1"),
        ((), "items must be at least two, not 0"),
        (tuple(map(str, range(100_001))), "domain_size must be an integer from 2 to 100000"),
        (("a", "b\0"), r"item 1 holds a control character, U\+0000"),
        (("a\nb", "b"), r"item 0 holds a control character, U\+000A"),
        (("a", "\x9b"), r"item 1 holds a control character, U\+009B"),
        (("a", " "), "item 1 is blank"),
        (("a", "\u200b\u2003\ufeff"), "item 1 is blank"),
        (("a", "\u3164"), "item 1 is blank"),
        (("a", 301 * "b"), "item 1 has 301 characters, and a label has at most 300"),
        (
            ("a", "caf\u00e9s", "cafe\u0301s"),
            r"item 1 and item 2, .* U\+00E9 U\+0073 and U\+0065 U\+0301 U\+0073 from character 3",
        ),
        (("soup", "\u200esoup"), r"item 0 and item 1, .* U\+0073 .* and U\+200E"),
        (("soup", "soup\u00a0"), r"item 0 and item 1, .*: nothing and U\+00A0 from character 4"),
        (("a", "\ud800"), "item 1 holds half a surrogate pair"),
        (("x\udfffy", "b"), "item 0 holds half a surrogate pair"),
    ],
)
def test_items_must_be_2_to_100000_distinct_labels(items: tuple[str, ...], reason: str) -> None:
    with pytest.raises(ParameterError, match=reason):
        RoundParameters("grr", 1, items)


@pytest.mark.parametrize(
    "label", ["é", "e\u0301", "日本", "😀", "👩\u200d💻", " a\u00a0b", 300 * "😀", "0"]
)
def test_other_labels_are_accepted_unchanged(label: str) -> None:
    """Labels are stored and digested as they came."""
    parameters = RoundParameters("grr", 1, ("first", label))
    assert parameters.items[1] == label
    assert len(parameters.digest) == 64


def test_stored_labels_may_be_longer_and_look_the_same() -> None:
    items = ("é", "e\u0301", 301 * "a")
    assert RoundParameters("grr", 1, items, stored=True).items == items
    with pytest.raises(ParameterError, match="half a surrogate pair"):
        RoundParameters("grr", 1, (*items, "\ud800"), stored=True)


@pytest.mark.parametrize("items", ["abc", {"a", "b"}, frozenset("ab"), None, 3])
def test_rejects_labels_without_an_order(items: Any) -> None:
    """A set has another order in each process."""
    with pytest.raises(ParameterError, match="items must be a list of labels, not"):
        RoundParameters("oue", 1.0, items)
