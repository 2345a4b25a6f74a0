"""Bars, counts and untrusted text."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from rich.console import Console

from ldprecover_cli import output
from ldprecover_cli.item_tables import bar, print_items
from ldprecover_cli.output import console, joined, plain, plain_table, print_whole


@pytest.mark.parametrize(
    ("value", "text"),
    [(-3.0, ""), (10.0, "█████"), (12.0, "█████"), (5.0, "██▌"), (0.25, "▏"), (0.01, "")],
)
def test_bar_is_as_long_as_its_value(value: float, text: str) -> None:
    assert bar(value, 10.0, 5) == text


def test_joined_emoji_are_shown_whole(capsys: pytest.CaptureFixture[str]) -> None:
    family, flag = (
        "👨\u200d👩\u200d👧\u200d👦",
        "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    )
    assert plain(family + flag) == family + flag
    narrow = Console(width=16)
    narrow.print(plain_table("item", "percent", rows=[(5 * family, "1.00")], numbers=1))
    shown = capsys.readouterr().out
    assert shown.count(family) == 5
    assert shown.replace(family, "").count("\u200d") == 0


@pytest.mark.parametrize(("width", "bar"), [(60, 17), (47, 4), (46, 0), (20, 0)])
def test_bars_give_way_before_labels(
    capsys: pytest.CaptureFixture[str], width: int, bar: int
) -> None:
    labels = {0: "👨\u200d👩\u200d👧\u200d👦" + 19 * "a", 1: "b"}
    print_items(Console(width=width), labels, [0.5, 0.5], {"n": lambda i: "1"}, beside=20, top=2)
    assert capsys.readouterr().out.count("█") == 2 * bar


@pytest.mark.parametrize(("width", "heads"), [(60, ["percent", "interval"]), (30, ["percent"])])
def test_last_columns_give_way_to_labels(
    capsys: pytest.CaptureFixture[str], width: int, heads: list[str]
) -> None:
    columns = {"percent": lambda i: "1.00", "interval": lambda i: "0.50 to 1.50"}
    print_items(Console(width=width), {0: 30 * "a"}, [0.01], columns, beside=30, top=1)
    shown = capsys.readouterr().out
    assert [head for head in columns if head in shown] == heads
    assert 12 * "a" in shown


def test_bar_in_ascii_has_whole_columns_and_without_a_scale_none() -> None:
    assert bar(5.9, 10.0, 5, ascii_only=True) == "###"
    assert bar(1.0, 0.0, 5) == bar(1.0, -1.0, 5) == ""


def test_columns_without_text_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [("a", "", "1"), ("b", "", "2")]
    console().print(plain_table("name", "question", "reports", rows=rows, numbers=1))
    assert capsys.readouterr().out.split() == ["name", "reports", "a", "1", "b", "2"]


@pytest.mark.parametrize("width", [20, 55, 80, 120])
def test_long_texts_break_no_word(capsys: pytest.CaptureFixture[str], width: int) -> None:
    """Several columns wrap, and characters of no width are replaced."""
    address = "https://statistics.department-of-statistics.university.example"
    row = (64 * "a", "\x07\x07What to eat today? " * 5, address, "near certain", "1,000,000")
    columns = ("name", "question", "server", "attack", "reports")
    print_whole(Console(width=width), plain_table(*columns, rows=[row], numbers=1, no_wrap=24))
    head, line, *others = capsys.readouterr().out.splitlines()
    assert head.split() == [*columns]
    assert (line.split()[0], line.split()[-4:]) == (row[0], [address, *row[3].split(), row[4]])
    words = " ".join([line.removeprefix(row[0]).partition(address)[0], *others]).split()
    assert words == plain(row[1]).split()


def test_untrusted_text_cannot_control_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    label = "a[red]b[/red] :smile: \x1b[2J\x07"
    assert plain(label) == "a[red]b[/red] :smile: \ufffd[2J\ufffd"
    console().print(plain_table("item", rows=[(label,)]))
    assert "a[red]b[/red] :smile: \ufffd[2J\ufffd" in capsys.readouterr().out


def test_right_to_left_labels_are_isolated(capsys: pytest.CaptureFixture[str]) -> None:
    assert joined(["soup", "\u05d0\u202e"]) == "soup; \u2068\u05d0\ufffd\u2069"
    print_items(
        Console(width=60), {0: "\u05d0", 1: "b"}, [1, 2], {"n": lambda i: "7"}, beside=50, top=2
    )
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        "item",
        "\u2068\u05d0\u2069",
        "b",
    ]


def test_link_is_opened_by_a_file_that_its_user_alone_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[Path] = []
    monkeypatch.setattr(output, "console", lambda: Console(force_terminal=True))
    monkeypatch.setattr("typer.launch", lambda url: opened.append(Path(urlsplit(url).path)))
    with output.opened_in_browser("http://h/#/rounds?demo=x&key=y"):
        (file,) = opened
        assert file.stat().st_mode & 0o777 == 0o600
        assert "url=http://h/#/rounds?demo=x&amp;key=y" in file.read_text()
    assert not file.exists()
