# ruff: noqa: RUF001  look-alike letters
"""Labels of a file that may be no items: named with line and text, or taken as they are."""

from enum import Enum, IntEnum
from pathlib import Path

import pytest

from ldprecover_client import Dataset, DatasetError, load_dataset, load_items
from ldprecover_client.datasets import label_of

ODD = {
    "a sum": [
        *("Total", "TOTAL:", "Grand total", "Sub-total", "Sum", "Gesamt", "Summe", "Итого", "合計"),
        *("Total (n = 50)", "Total général", "Gesamtergebnis"),
    ],
    "a missing value": [
        "NULL",
        "NaN",
        "<NA>",
        "#N/A",
        "#REF!",
        "#WERT!",
        "(null)",
        "########",
        "-",
    ],
    "has quotes": ["'tea'", "“tea”", "„tea“", '\xa0"tea"'],
    "a note": [
        *("Source: INE", "Quelle: Destatis", "Zdroj: ČSÚ", "Źródło: GUS", "Forrás: KSH", "© 2024"),
        *("* estimated", "(3 rows)", "Page 1 of 3", "Exported on 1 May"),
    ],
    "a heading": ["# drinks", "Our drinks:", "Please select", "-- select --"],
    "a hidden character": ["\ufeffpie", "pi\u200be", "pie\u200e", "pie\u202egnp.exe"],
    "a bullet or number": ["- tea", "• tea", "1) tea", "a) tea", "[ ] tea", "☐ tea"],
    "a separator": ["tea,", "tea;", "tea ..... 3"],
    "joined into one": ["ﬁsh"],
    "two alphabets": ["Сoffee"],
    "a formula": ["=A1+1"],
    "no letter": ["-----", "---+---"],
    "a second header": ["Open-Ended Response", "Response", '{"ImportId":"QID1"}', "Item"],
    "rounded": ["4.00638E+12", "4,01E+12"],
    "as codes": [
        "K&auml;se",
        "R&amp;B",
        "K%C3%A4se",
        r"K\u00e4se",
        "K=C3=A4se",
        "<b>tea</b>",
        "K=E4se",
    ],
    "lost": ["K?se", "K\ufffdse", "M??nchen"],
}
PLAIN = [
    *("None", "NA", "Namibia", "Other: write", "Total Wine", "5 %", "C++", "AT&T", "?", "Why?"),
    *("«Oui»", '12" pizza', "'s-Hertogenbosch", "Summer", "E3", "1E5", "-5 °C", "👍", "日本", "x"),
    *(
        "ខាង\u200bជើង",
        "\u200fשלום",
        "می\u200cروم",
        "👩\u200d💻",
        "e.V. Köln",
        "3.5 l",
        "Noon: 12:00",
    ),
    *(
        "C#",
        ".NET",
        "7up",
        "1. FC Köln",
        "z. B. Tee",
        "¥100",
        "µg",
        "kΩ",
        "McÉvoy",
        "T恤",
        "a.b/?c=d",
    ),
]


@pytest.mark.parametrize(("reason", "label"), [(why, odd) for why in ODD for odd in ODD[why]])
def test_odd_label_is_named_with_its_line(tmp_path: Path, reason: str, label: str) -> None:
    cell = label.replace('"', '""') if label.startswith("{") else label
    cell = f'"{cell}"' if cell != label or set(label) & {*";,"} else label
    for name, text, load in (
        ("list.csv", f"nr,item\n1,tea\n2,{cell}\n", load_items),
        ("users.csv", f"nr,item\n1,tea\n2,{cell}\n3,tea\n", load_dataset),
        ("counts.csv", f"item,users\ntea,1\n{cell},7\n", load_dataset),
    ):
        path = tmp_path / name
        path.write_text(text)
        column = None if name == "counts.csv" else "item"
        with pytest.raises(DatasetError, match=rf"{name}, line 3: .*{reason}.*--as-is"):
            load(path, column)
        taken = load(path, column, as_is=True)
        assert label.strip() in (taken.items if isinstance(taken, Dataset) else taken)


def test_plain_labels_are_no_odd_ones(tmp_path: Path) -> None:
    path = tmp_path / "f.txt"
    path.write_text("\n".join(PLAIN))
    assert load_items(path) == tuple(PLAIN)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("tea\nTea", "line 2: 'Tea' looks like 'tea' in f.txt, line 1"),
        ("Coca\nСоса", "line 2: 'Соса' looks like 'Coca'"),
        ("tea\nｔｅａ", "line 2: 'ｔｅａ' looks like 'tea'"),
        ("❤\n❤️", "line 2: '❤️' looks like '❤'"),
        ("tea\npie\ntea, pie", "line 3: 'tea, pie' may be several answers"),
        ("tea, pie", "line 1: 'tea, pie' may be several answers"),
        ("茶、咖啡", "line 1: '茶、咖啡' may be several answers"),
        ('question = "Which?"\nitems = ["x", "y"]', "line 1: 'question = \"Which?\"' has quotes"),
        ("Name\ntea\npie", "line 1: 'Name' may be a heading"),
        ("\nDrinks\n\ntea\npie", "line 2: 'Drinks' may be a heading"),
        ("Which one?\ntea\npie", "line 1: 'Which one?' may be a heading"),
        ("Ours\n1. tea\n2. pie", "line 2: '1. tea' begins with a bullet or number, as most do"),
        ("1 = tea\n2 = pie", "line 1: '1 = tea' begins with a bullet or number"),
        ("* tea\n* pie", "line 1: '* tea' begins with a bullet or number"),
        ("tea 30%\npie 70 %", "line 1: 'tea 30%' ends with a share or number, as most do"),
        ("tea (12)\npie (3)", "line 1: 'tea (12)' ends with a share or number"),
        ("Drink,Price\ntea,1\npie,2", "line 2: 'tea,1' ends with a share or number"),
        ("tea\n\npie\n\nfish", ""),
        ("Why?\nWho?\nWhen", ""),
        ("1. Klasse\n2. Klasse\n3. Klasse", ""),
        ("Milk 1.5%\nMilk 3.5%", ""),
        ("Alien (1979)\nAliens (1986)", ""),
        ("Chicago, 60601\nDallas, 75201", ""),
    ],
)
def test_odd_list_is_named(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "f.txt"
    path.write_text(text)
    if reason:
        with pytest.raises(DatasetError) as caught:
            load_items(path)
        assert reason in str(caught.value)
    assert load_items(path, as_is=bool(reason)) == tuple(filter(None, text.split("\n")))


@pytest.mark.parametrize(
    "second",
    ['R_1,Which?,"{""ImportId"":""x""}"', "id,Text,Duration (in seconds)", "-,city,n"],
)
def test_second_header_is_named(tmp_path: Path, second: str) -> None:
    path = tmp_path / "f.csv"
    path.write_text(f"id,city,age\n{second}\n1,Ulm,30\n2,Ulm,31\n3,Bonn,2024-01-01 10:00\n")
    with pytest.raises(DatasetError, match=r"f\.csv: '.*' may be a second header"):
        load_dataset(path, "city")
    assert load_dataset(path, "city", as_is=True).counts.sum() == 4


def test_error_names_the_first_three_findings(tmp_path: Path) -> None:
    path = tmp_path / "f.txt"
    path.write_text("tea\nTotal\nNULL\n\nSum\n- x\n")
    with pytest.raises(DatasetError, match=r"line 2: .*; f\.txt, line 3: .*line 5: .*; and more:"):
        load_items(path)


def test_enum_members_are_their_values() -> None:
    class Colour(Enum):
        RED = "red"
        FIVE = 5.0

    class Number(IntEnum):
        ONE = 1

    assert [*map(label_of, (*Colour, *Number))] == ["red", "5", "1"]
