"""Tests of `tools/phrases.py`."""

import pytest
from phrases import HERE, check, read_list

PHRASES, NAMES = read_list((HERE / "phrases.txt").read_text())


@pytest.mark.parametrize(
    ("file", "text", "hits"),
    [
        ("a.py", 'def f(given: int) -> None:\n    """It goes\n    on."""\n', ["given", "goes on"]),
        ("a.py", "goes = on = f(\"a room of its \" 'own')  # anew\n", ["of its own", "anew"]),
        ("a.py", "_told = 1\n", ["told"]),
        ("a.py", "if a is None: pass  # phrases: quoted, anew\n", []),
        ("a.js", 'const anew = "at once"; // not at\n// once\n', ["at once"]),
        (
            "a.md",
            "Said anew, `not anew`.\n```\nanew\n```\n" + "long " * 21,
            ["anew", "105 columns"],
        ),
    ],
)
def test_hits(file: str, text: str, hits: list[str]) -> None:
    result = check(file, text, PHRASES, NAMES)
    assert sorted(phrase for _, phrase, _ in result) == sorted(hits)


def test_line_of_hit_across_lines() -> None:
    assert check("a.md", "\n\nat\nonce", PHRASES, NAMES) == [
        (3, "at once", "immediately, together, or in one step")
    ]
