"""Bars, counts and untrusted text."""

import pytest

from ldprecover_cli.item_tables import bar
from ldprecover_cli.output import console, counted, plain, plain_table


@pytest.mark.parametrize(
    ("value", "text"),
    [(-3.0, ""), (10.0, "█████"), (12.0, "█████"), (5.0, "██▌"), (0.25, "▏"), (0.01, "")],
)
def test_bar_is_as_long_as_its_value(value: float, text: str) -> None:
    assert bar(value, 10.0, 5) == text


def test_bar_in_ascii_has_whole_columns_and_without_a_scale_none() -> None:
    assert bar(5.9, 10.0, 5, ascii_only=True) == "###"
    assert bar(1.0, 0.0, 5) == bar(1.0, -1.0, 5) == ""


def test_numbers_agree_with_their_noun() -> None:
    texts = [counted(n, "report") for n in (0, 1, 2000)]
    assert texts == ["0 reports", "1 report", "2,000 reports"]


def test_untrusted_text_cannot_control_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    label = "a[red]b[/red] :smile: \x1b[2J\x07"
    assert plain(label) == "a[red]b[/red] :smile: \ufffd[2J\ufffd"
    console().print(plain_table("item", rows=[(label,)]))
    assert "a[red]b[/red] :smile: \ufffd[2J\ufffd" in capsys.readouterr().out
