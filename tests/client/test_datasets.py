import gzip
from pathlib import Path

import numpy as np
import pytest

from ldprecover_client import Dataset, DatasetError, load_dataset


@pytest.fixture
def csv_file(tmp_path: Path):
    """Write a file and return its path."""

    def write(content, name: str = "data.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.mark.parametrize(
    ("name", "d", "total", "first"),
    [
        ("cities", 102, 65_449_206, ("New York, NY", 8_804_190)),
        ("fire", 178, 7_704, ("E03", 292)),
        ("emoji", 1_496, 218_477, ("0", 41_618)),
    ],
)
def test_shipped_data_set_has_source(name: str, d, total, first):
    data = load_dataset(name)
    assert (data.name, len(data.items), int(data.counts.sum())) == (name, d, total)
    assert (data.items[0], data.counts[0]) == first
    assert data.counts.dtype == np.int64
    assert any(licence in data.source for licence in ("public domain", "PDDL", "MIT"))


def test_frequencies_are_shares():
    frequencies = load_dataset("cities").frequencies
    assert frequencies.sum() == pytest.approx(1, abs=1e-12)
    assert frequencies[0] == 8_804_190 / 65_449_206


def test_counts_keep_file_order(csv_file):
    data = load_dataset(str(csv_file('item,count\n"b, c",3\na,0\n d , 5 \n')))
    assert data.items == ("b, c", "a", "d")
    assert data.counts.tolist() == [3, 0, 5]
    assert data.source == "the file data.csv"


@pytest.mark.parametrize(
    "content",
    [
        "count,other,item\n1,x,a\n2,y,b\n",
        "item,count\r\na,1\r\n\r\nb,2\r\n",
        b"\xef\xbb\xbfitem,count\na,1\nb,2",
        " item , count \na,1\nb,2\n",
    ],
    ids=["columns elsewhere", "windows", "byte order mark", "spaced header"],
)
def test_reads_other_spellings_of_file(csv_file, content):
    data = load_dataset(csv_file(content))
    assert (data.items, data.counts.tolist()) == (("a", "b"), [1, 2])


def test_rows_of_users_are_counted(csv_file):
    data = load_dataset(csv_file("id,unit\n1,E03\n2,T01\n3,E03\n4,A\n5, \n6,\n"), column="unit")
    assert data.items == ("A", "E03", "T01")
    assert data.counts.tolist() == [1, 2, 1]
    source = "column unit of the file data.csv; 2 blank ones left out; sorted by name"
    assert data.source == source


def test_values_that_look_the_same_are_one_item(csv_file):
    data = load_dataset(
        csv_file("dish\ncafe\u0301\nsoup\nso\u00adup\ncaf\u00e9\ncafe\u0301\n\u200b\n"),
        column="dish",
    )
    assert data.items == ("cafe\u0301", "soup")
    assert data.counts.tolist() == [3, 2]
    assert "1 blank ones left out" in data.source


def test_column_is_named_in_another_form(csv_file):
    data = load_dataset(csv_file("a,cafe\u0301,a\n1,x,2\n1,y,2\n2,x,,\n"), column="caf\u00e9")
    assert data.counts.tolist() == [2, 1]


def test_reads_gzipped_file(csv_file):
    path = csv_file(gzip.compress(b"CITY\n1\n2\n1\n"), "extract.csv.gz")
    assert load_dataset(path, column="CITY").items == ("1", "2")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "data.csv is empty"),
        ("\n \n", "data.csv is empty"),
        ("item,count\n", "a header and no row"),
        (
            "name,n\na,1\n",
            "no column 'item'; it has name, n; call the columns item and count, or name the column",
        ),
        ("item,n\na,1\n", "no column 'count'"),
        ("item,count\na,1\nb\n", "line 3: too few cells in 'b'"),
        (
            "item,count\na,1\nb,-2\n",
            "line 3: the count must be an integer of 0 or more and below 10^18, ",
        ),
        ("item,count\na,1\nb," + "9" * 99_999, f"not '{'9' * 80}'"),
        (
            "item, count ,count\na,1,2\nb,2,3\n",
            "data.csv has both columns, 'count' and 'count': rename",
        ),
        ("item,count\na,1,000\nb,2\n", "line 2: more cells than columns in 'a,1,000'; quote"),
        ("item,count\na,1\n,2\n", "line 3: the item is blank"),
        ("item,count\na,1\nb,2\na,3\n", "line 4: the item 'a' was there before"),
        (
            "item,count\n\u212b,1\n\u00c5,3\n",
            "was there before, in data.csv, line 2, which look the same: U+212B and U+00C5 from",
        ),
        ("item,count\na,0\nb,0\n", "not all 0"),
        (b"item,count\n\xff\xfe,1\n", "not text in UTF-8"),
        ('item,count\n"a,1\nb,2\n', "not CSV"),
    ],
)
def test_rejects_malformed_file_with_place(csv_file, content, words: str):
    with pytest.raises(DatasetError) as caught:
        load_dataset(csv_file(content))
    assert words in str(caught.value)


def test_file_of_another_kind_is_not_repeated(csv_file):
    with pytest.raises(DatasetError) as caught:
        load_dataset(csv_file("root:secret,0\n", "passwd"), "item")
    assert "passwd has no column 'item'; it has 2 columns" in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "column"),
    [
        ("City;Users\nb;3\na;5\n", None),
        ("ort;x;count\nb;;3\na;;5\n", "Ort"),
        ("Count,x,Item\n3,,b\n5,,a\n", None),
    ],
)
def test_counts_have_a_name(csv_file, content: str, column):
    data = load_dataset(csv_file(content), column)
    assert (data.items, data.counts.tolist()) == (("b", "a"), [3, 5])


def test_numbers_of_another_name_are_not_left_out(csv_file):
    with pytest.raises(DatasetError, match="no value of City is there twice; if another column"):
        load_dataset(csv_file("City;Anzahl\nb;3\na;5\n"), "City")


def test_first_line_is_a_value_if_it_comes_again(csv_file):
    assert load_dataset(csv_file("a\nb\na\n")).counts.tolist() == [2, 1]
    with pytest.raises(DatasetError, match="name the column with --column 'drink'"):
        load_dataset(csv_file("drink\nb\nb\na\n"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,b\n1,2\n", "no column 'CITY'; it has a, b"),
        ("CITY\n\n \n", "holds no value"),
        ("CITY\nNew York, NY\nDenver\n", "line 2: more cells than columns in 'New York,NY'"),
        ("CITY,CITY\u200b\n1,2\n", "both columns, 'CITY' and 'CITY"),
    ],
)
def test_rejects_uncountable_column(csv_file, content, words: str):
    with pytest.raises(DatasetError) as caught:
        load_dataset(csv_file(content), column="CITY")
    assert words in str(caught.value)


def test_missing_file_error_lists_names():
    with pytest.raises(
        DatasetError, match="no file town, and no data set of that name: cities, fire, emoji"
    ):
        load_dataset("town")


def test_rejects_folder(tmp_path: Path):
    with pytest.raises(DatasetError, match="it is a folder"):
        load_dataset(tmp_path)


def test_rejects_false_gzip(csv_file):
    with pytest.raises(DatasetError, match="cannot read"):
        load_dataset(csv_file("item,count\na,1\nb,2\n", "data.csv.gz"))


def test_rejects_truncated_gzip(csv_file):
    whole = gzip.compress(b"item,count\n" + b"".join(b"%d,1\n" % i for i in range(5000)))
    with pytest.raises(DatasetError, match="not a CSV file"):
        load_dataset(csv_file(whole[:-2000], "data.csv.gz"))


def test_rejects_column_of_shipped_data_set():
    with pytest.raises(DatasetError, match="counted already"):
        load_dataset("cities", column="item")


@pytest.mark.parametrize(
    ("items", "counts", "words"),
    [
        (("a", "b"), [1], "one count for each item"),
        (("a", "a"), [1, 2], "distinct"),
        (("\ud55c", "\u1112\u1161\u11ab"), [1, 2], "distinct"),
        (("a", 5), [1, 2], "non-empty string; item 1 is not"),
        (("a", 301 * "b"), [1, 2], "item 1 has 301 characters"),
        (("a", "b"), [1, -2], "counts must be integers from 0 to"),
        ({"a", "b"}, [1, 2], "items must be a list of labels"),
        ("ab", [1, 2], "items must be a list of labels, not 'ab'"),
        (None, [1, 2], "items must be a list of labels"),
    ],
)
def test_rejects_invalid_data_set(items, counts, words: str):
    with pytest.raises(DatasetError, match=words):
        Dataset("mine", items, counts, "made up")
