"""Bars, counts and strangers' text."""

import pytest

from ldprecover_cli.item_tables import bar
from ldprecover_cli.output import console, counted, plain, plain_table


@pytest.mark.parametrize(
    ("value", "drawn"),
    [
        (0.0, ""),
        (-3.0, ""),
        (10.0, "█████"),
        (12.0, "█████"),
        (5.0, "██▌"),
        (0.25, "▏"),
        (0.01, ""),
    ],
)
def test_a_bar_is_as_long_as_its_value(value: float, drawn: str) -> None:
    assert bar(value, 10.0, 5) == drawn


def test_a_bar_in_ascii_has_whole_columns() -> None:
    assert bar(5.9, 10.0, 5, ascii_only=True) == "###"


def test_a_bar_without_a_scale_is_empty() -> None:
    assert bar(1.0, 0.0, 5) == ""
    assert bar(1.0, -1.0, 5) == ""


def test_numbers_of_things_agree_with_their_noun() -> None:
    assert [counted(n, "report") for n in (0, 1, 2000)] == [
        "0 reports",
        "1 report",
        "2,000 reports",
    ]


def test_what_strangers_wrote_can_neither_style_nor_steer_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    label = "a[red]b[/red] :smile: \x1b[2J\x07"
    assert plain(label) == "a[red]b[/red] :smile: \ufffd[2J\ufffd"
    table = plain_table("item")
    table.add_row(plain(label))
    console().print(table)
    assert "a[red]b[/red] :smile: \ufffd[2J\ufffd" in capsys.readouterr().out
