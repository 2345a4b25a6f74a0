"""Lists of items as people have them: from text files, spreadsheets and Parquet."""

import gzip
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from ldprecover_client import DatasetError, load_dataset, load_items

FRUIT = ("\u00c4pfel", "Birnen, rot", "Zitronen")


def _write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("name", "content", "column"),
    [
        ("f.txt", "\u00c4pfel\r\nBirnen, rot\r\n\r\n Zitronen", None),
        ("f", b"\xef\xbb\xbf\xc3\x84pfel\nBirnen, rot\nZitronen\n", None),
        ("f.csv", 'Obst\n\u00c4pfel\n"Birnen, rot"\nZitronen\n', "Obst"),
        ("f.csv", 'Item\n\u00c4pfel\n"Birnen, rot"\nZitronen\n', None),
        ("f.csv", 'item\n\u00c4pfel\n"Birnen, rot"\nZitronen\n', None),
        ("f.csv", "Label;Preis\n\u00c4pfel;1,20\nBirnen, rot;2,50\nZitronen;3\n".lower(), "label"),
        ("f.csv", "nr;item\n1;\u00c4pfel\n2;Birnen, rot\n3;Zitronen\n", None),
        ("f.csv", "Produkt;Preis, netto\n\u00c4pfel;1,20\nBirnen, rot;3\nZitronen;3\n", "Produkt"),
        ("f.csv", "sep=;\nObst;x, y\nÄpfel;1\nBirnen, rot;2\nZitronen;3\n", "Obst"),
        ("f.csv", '"Nr","Obst"\n1,\u00c4pfel\n2,"Birnen, rot"\n3,Zitronen\n', "Obst"),
        ("f.tsv", "Obst\tPreis\n\u00c4pfel\t1,2\nBirnen, rot\t1,3\nZitronen\t2\n", "Obst"),
        ("f.csv", 'nr, item\n1, "\u00c4pfel"\n2, "Birnen, rot"\n3, "Zitronen"\n', None),
        ("F.CSV", "nr|item\n1|\u00c4pfel\n2|Birnen, rot\n3|Zitronen\n4|\\N\n", None),
        ("F.TXT", "\u00c4pfel\nBirnen, rot\n\\N\nZitronen", None),
        ("f.txt", "Obst\tPreis\n\u00c4pfel\t1,2\nBirnen, rot\t1,3\nZitronen\t2\n", "Obst"),
    ],
)
def test_list_keeps_its_order(tmp_path: Path, name: str, content: str, column: str | None) -> None:
    items = load_items(_write(tmp_path, name, content), column)
    assert [item.casefold() for item in items] == [item.casefold() for item in FRUIT]


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
def test_other_encodings_are_named_by_the_error(tmp_path: Path, encoding: str) -> None:
    text = "item;users\n" + "".join(f"{item};5\n" for item in FRUIT)
    path = _write(tmp_path, "obst.csv", text.encode(encoding))
    assert load_items(path, encoding=encoding) == FRUIT
    assert load_dataset(path, encoding=encoding).counts.tolist() == [5, 5, 5]
    with pytest.raises(DatasetError, match=rf"not text in UTF-8.*--encoding.*{encoding}"):
        load_items(path)


def test_reads_parquet_and_gzip(tmp_path: Path) -> None:
    table = pa.table({"nr": [1, 2, 3], "obst": FRUIT, "users": [4, 0, 6]})
    parquet.write_table(table, tmp_path / "obst.PARQUET")
    assert load_items(tmp_path / "obst.PARQUET", "obst") == FRUIT
    parquet.write_table(table.drop(["nr"]), tmp_path / "two.parquet")
    assert load_dataset(tmp_path / "two.parquet", "obst").counts.tolist() == [4, 0, 6]
    parquet.write_table(table.select(["nr"]), tmp_path / "one.parquet")
    assert load_items(tmp_path / "one.parquet") == ("1", "2", "3")
    path = _write(tmp_path, "obst.TXT.GZ", gzip.compress("\n".join(FRUIT).encode()))
    assert load_items(path) == FRUIT


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("f.txt", 'tea\n"soup, hot"\n', "f.txt, line 2: '\"soup, hot\"' has quotes"),
        ("f.txt", "item,count\ntea,3\n", "f.txt, line 1: 'item,count' is of a CSV file"),
        ("f.txt", "•\ttea\n•\tpie\n", "line 1: the item holds a control character, U+0009"),
        ("f.txt", "tea;3\nsoup;4\n", "f.txt, line 1: 'tea;3' is of a CSV file"),
        ("f.csv", "label,item\ntea,0\nsoup,1\n", "f.csv has both columns, 'label' and 'item'"),
        ("f.csv", "name,price\ntea,3\n", "no column 'item'; it has name, price; name the column"),
        ("f.csv", "drink\ntea\n", "f.csv: 'drink' in the first line may be an item or the name"),
        ("f.txt", "Item\ntea\n", "f.txt, line 1: 'Item' is of a CSV file"),
        ("f.csv", b'item\ntea\n"soup\nfish\n', "line 3 is not CSV: no quote ends the one"),
        ("f.txt", "tea\nsoup\n".encode("utf-32"), "f.txt is binary data or text in UTF-32: save"),
        (
            "f.txt",
            "tea\nsoup\n".encode("utf-32-be"),
            "f.txt is binary data or text in UTF-32: save",
        ),
        ("f.csv", b"\x01\0\0\0\x02\0\0\0", "f.csv is binary data"),
        ("f.csv", b"<stata_dta><header>", "f.csv is a Stata file: save the list as CSV"),
        ("f.dta", b"\x72\x02\x01\0\x02\0\x05\0\0\0", "f.dta is a Stata file"),
        ("f.sav", b"$FL2@(#) SPSS" + 99 * b"\0", "f.sav is an SPSS file"),
        ("f.csv", 12 * b"\0" + b"\xc2\xea\x81\x60", "f.csv is a SAS file"),
        ("f.db", b"SQLite format 3\0", "f.db is an SQLite database"),
        ("f.csv", b"%PDF-1.7\n", "f.csv is a PDF or RTF"),
        ("f.csv", rb"{\rtf1 tea", "f.csv is a PDF or RTF"),
        ("f.csv", gzip.compress(b"item\ntea", mtime=0), "f.csv is a gzip file"),
        ("f.xls", b"<html><table>", "f.xls is HTML or XML"),
        ("f.ods", b"PK\x03\x04", "f.ods is a spreadsheet"),
        ("f.csv", "Sales 2024,,\n,,\nitem,price,\ntea,2,\n", "'Sales 2024' is above the names"),
        ("f.csv", "a,,,\ntea,1,2,3\n", "no column 'item'; it has a; name"),
        ("f.csv", "|a|b\n|tea|1\n", "no column 'item'; it has a, b; name"),
        ("f.csv", "2024\nnr;item\n1;tea\n", "line 1: '2024' is above the names of the columns"),
        ("f.txt", "sep=;\ntea\n", "f.txt, line 1: 'sep=;' is of a CSV file"),
        ("f.csv", 'item,n\n"a\nb",1\n', "line 2: the item holds a control character, U+000A"),
        ("f.csv", "item\n", "f.csv has no item"),
        ("f.txt", "", "f.txt has no item"),
        ("f.txt", "a\n" + 301 * "b", "f.txt, line 2: the item '" + 80 * "b" + "' has 301"),
        ("f.xlsx", b"PK\x03\x04rest", "f.xlsx is a spreadsheet"),
        ("f.csv", b"PAR1rest", "f.csv is a Parquet file"),
        ("f.csv", '{"items": ["tea"]}', "f.csv is JSON"),
        ("f.txt", "\u00c4pfel".encode("utf-16-le"), "is not text in UTF-8"),
        ("f.txt", "はい\nいいえ\n".encode("utf-16-le"), "in UTF-16 or binary data"),
        ("f.txt", 'title = ""\n[[questions]]\n', "f.txt is a form in TOML"),
        ("f.csv", f"item\n{200_000 * 'b'}\n", "line 2 is not CSV: a cell is too long, or no quote"),
    ],
)
def test_refuses_what_is_no_list(
    tmp_path: Path, name: str, content: str | bytes, words: str
) -> None:
    with pytest.raises(DatasetError) as caught:
        load_items(_write(tmp_path, name, content))
    assert words in str(caught.value)


def test_reads_what_no_other_encoding_is(tmp_path: Path) -> None:
    for codec in ("utf-16-le", "utf-16-be"):  # without a byte order mark
        assert load_items(_write(tmp_path, "f.txt", "tea\nÄpfel".encode(codec)), encoding="utf-16")
    path = _write(tmp_path, "f.txt", "«CAFÉ»\n«NOË»\nÃO".encode("cp1252"))
    assert load_items(path, encoding="cp1252") == ("«CAFÉ»", "«NOË»", "ÃO")


def test_rare_values_of_private_rows_are_left_out(tmp_path: Path) -> None:
    rows = ["tea"] * 9 + ["Coffee"] * 5 + ["rakija"] * 4 + ["tea", "secret"]
    path = _write(tmp_path, "drinks.csv", "\n".join(["drink", *rows]))
    data = load_dataset(path, "drink", least=5)
    assert (data.items, data.counts.tolist()) == (("Coffee", "tea"), [5, 10])
    assert data.source.endswith("; 2 values of fewer than 5 users left out; sorted by name")
    with pytest.raises(DatasetError, match="only 0 of 4 values have at least 50 users"):
        load_dataset(path, "drink", least=50)


def test_numbers_are_sorted_as_numbers(tmp_path: Path) -> None:
    path = _write(tmp_path, "ages.txt", "\n".join(map(str, [10, 9, 9, 101])))
    assert load_dataset(path).items == ("9", "10", "101")


def test_large_file_is_read_whole(tmp_path: Path) -> None:
    lines = [f"{i};item {i}" for i in range(20_000)]
    path = _write(tmp_path, "many.csv", "nr;item\n" + "\n".join(lines))
    assert load_items(path)[-1] == "item 19999"
    lines[16_000] = "x;\xe9"
    path.write_text("nr;item\n" + "\n".join(lines), encoding="cp1252")
    with pytest.raises(DatasetError, match=r"many\.csv, line 16002 .* UTF-8.*'x;\xe9'"):
        load_items(path)
