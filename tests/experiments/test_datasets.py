"""One's own data as a data set, whatever holds it."""

import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from ldprecover_client import Dataset, DatasetError, load_dataset
from ldprecover_experiments import dataset_of, simulate

PETS = ["cat", "dog", "cat", None, " cat ", "newt", "dog", ""]


class _Polarslike:
    """A Series as polars has it: Arrow's stream, a name, and numpy on request."""

    name = "pet"

    def __init__(self, values: list[Any]) -> None:
        self._values = values

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return pa.chunked_array([self._values]).__arrow_c_stream__(requested_schema)

    def to_numpy(self) -> np.ndarray:
        return np.array(self._values, dtype=object)


@pytest.mark.parametrize(
    "make",
    [
        pa.array,
        lambda values: pa.chunked_array([values[:3], values[3:]]),
        lambda values: pa.array(values).dictionary_encode(),
        pd.Series,
        lambda values: pd.Series(values, dtype="category"),
        lambda values: np.array(values, dtype=object),
        list,
        iter,
        pd.Categorical,
        _Polarslike,
    ],
)
def test_values_are_counted_and_sorted_by_name(make: Callable[[list[Any]], Any]) -> None:
    assert dataset_of(make(PETS), least=2).items == ("cat", "dog")
    dataset = dataset_of(make(PETS), name="pets")
    assert (dataset.name, dataset.items, dataset.counts.tolist()) == (
        "pets",
        ("cat", "dog", "newt"),
        [3, 2, 1],
    )
    assert dataset.source == "values in memory; 2 blank ones left out; sorted by name"
    assert dataset_of(pd.Series(["a", "b"], name="letters")).name == "letters"


@pytest.mark.parametrize("kind", ["pandas", "arrow", "parquet"])
def test_table_is_counted_by_column_or_taken_as_it_is(kind: str, tmp_path: Path) -> None:
    def table(**columns: list[Any]) -> Any:
        if kind == "parquet":
            parquet.write_table(pa.table(columns), tmp_path / "pets.parquet")
            return tmp_path / "pets.parquet"
        return (pd.DataFrame if kind == "pandas" else pa.table)(columns)

    pets = table(owner=list(range(8)), pet=PETS)
    dataset = dataset_of(pets, "pet")
    assert (dataset.items, dataset.counts.tolist()) == (("cat", "dog", "newt"), [3, 2, 1])
    assert dataset.name == ("pets.parquet" if kind == "parquet" else "pet")
    with pytest.raises(DatasetError, match=r"name (of )?the column to count"):
        dataset_of(pets)
    with pytest.raises(DatasetError, match="no column 'pets'"):
        dataset_of(pets, "pets")
    pets = table(note=["", "x"], item=["newt", "cat"], count=[1, 3])
    assert dataset_of(pets).items == ("newt", "cat")
    assert dataset_of(pets).counts.tolist() == [1, 3]
    assert dataset_of(pets, "item").counts.tolist() == [1, 3]
    with pytest.raises(DatasetError, match="no value of pet is there twice; if another column"):
        dataset_of(table(pet=["newt", "cat"], n=[1, 3]), "pet")
    with pytest.raises(DatasetError, match=r"counts? must be (an )?integer"):
        dataset_of(table(item=["newt", "cat"], count=[0.5, 3]))


@pytest.mark.parametrize(
    "make",
    [
        tuple,
        Counter,
        lambda values: dict(Counter(values)),
        lambda values: pd.Series(values, index=np.arange(6)[::-1]),
        lambda values: pd.Series(values).value_counts(),
        lambda values: pd.Series(values).value_counts().reset_index(),
        lambda values: pd.Series(values, name="pet").value_counts().reset_index(),
        lambda values: pd.Series(values).value_counts().astype("Int64"),
        lambda values: pd.DataFrame({"pet": values}).groupby("pet").size().rename("count"),
        lambda values: pd.DataFrame({"Item": ["cat", "dog"], "Users": [4, 2]}),
        lambda values: pd.DataFrame({"pet": values}),
        lambda values: pa.table({"pet": values}),
        lambda values: pa.table({"pet": ["cat", "dog"], "count": [4, 2]}),
        lambda values: pa.record_batch({"item": ["cat", "dog"], "count": [4, 2]}),
        pd.Index,
    ],
)
def test_counts_and_tables_are_taken_in_every_form(make: Callable[[list[str]], Any]) -> None:
    pets = dataset_of(make(["cat", "cat", "dog", "cat", "dog", "cat"]))
    assert (pets.items, pets.counts.tolist()) == (("cat", "dog"), [4, 2])


@pytest.mark.parametrize("name", ["values.txt", "values.csv"])
def test_simulate_takes_a_file_without_a_header(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes("Käse\nBrot\nKäse\n".encode("cp1252"))
    simulated = simulate(tmp_path / name, "grr", encoding="cp1252")
    assert (simulated.items, simulated.round.genuine.n) == (("Brot", "Käse"), 3)


def test_numbers_become_labels_as_a_file_would_write_them() -> None:
    """pandas makes floats of whole numbers where some are missing."""
    assert dataset_of(pd.Series([17, 17, None, 3])).items == ("3", "17")
    assert dataset_of(np.array([0.5, 0.5, 2.0])).items == ("0.5", "2")
    assert dataset_of(np.array([3, 12, 3])).items == ("3", "12")


def test_without_pyarrow_numpy_works_and_arrow_is_rejected(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for module in ("ldprecover_experiments.simulation.datasets", "ldprecover_client.tables"):
        monkeypatch.setattr(f"{module}.find_spec", lambda name: None)
    (tmp_path / "pets.parquet").touch()
    assert dataset_of(_Polarslike(PETS)).items == ("cat", "dog", "newt")

    class Stream:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            raise NotImplementedError

    with pytest.raises(DatasetError, match="reading Arrow data needs pyarrow"):
        dataset_of(Stream())
    with pytest.raises(DatasetError, match="is a Parquet file, which needs pyarrow"):
        dataset_of(tmp_path / "pets.parquet")


def test_rejects_unreadable_parquet_file(tmp_path: Path) -> None:
    (tmp_path / "torn.parquet").write_bytes(b"PAR1 and nothing more")
    for name, reason in (("nowhere", "there is no file"), ("torn", "is not a Parquet")):
        with pytest.raises(DatasetError, match=reason):
            dataset_of(tmp_path / f"{name}.parquet", "pet")


def test_csv_and_shipped_data_equal_the_clients(tmp_path: Path) -> None:
    file = tmp_path / "pets.csv"
    file.write_text("owner,pet\n1,cat\n2,dog\n3,cat\n")
    assert dataset_of(str(file), "pet").counts.tolist() == [2, 1]
    cities = load_dataset("cities")
    assert dataset_of("cities").counts.tolist() == cities.counts.tolist()
    assert dataset_of(cities) is cities


def test_bytes_are_read_as_text() -> None:
    assert dataset_of(np.array([b"a", "é".encode(), b"a"])).items == ("a", "é")
    with pytest.raises(DatasetError, match="must be text in UTF-8"):
        dataset_of(np.array([b"a", b"\xff"]))


@pytest.mark.parametrize(
    ("source", "column", "words"),
    [
        (pd.DataFrame({"pet": ["cat"], "n": [3]}), None, "no column 'item'; it has pet, n; call"),
        (7, None, "must be a list, a file's name, a Series or an Arrow array, not int"),
        (np.zeros((2, 2)), None, "must be one-dimensional"),
        (np.array(["a", "a"]), None, "from 2 to"),
        (np.array([None, ""], dtype=object), None, "holds no value"),
        (pa.array([[1], [2]]), None, "text or a number"),
        (pd.Series([[1], [2]]), None, "text or a number"),
        (np.array(["a", pd.NA], dtype=object), None, "text or a number"),
        (b"tea", None, "bytes are no values"),
        ([("a", 3), ("b", 4)], None, "dict(pairs) gives counts"),
        (pd.DataFrame(), None, "columns of a frame must be one or more"),
        (pd.DataFrame([["a", "b"]], columns=["x", "x"]), "x", "each of another name"),
        (pd.DataFrame({"n": [3, 4]}, index=["a", "b"]), "n", "may be counts or values"),
        (pd.DataFrame({"drink": ["a", "b"]}), "drnk", "'drnk'; did you mean 'drink'?"),
    ],
)
def test_rejects_what_is_no_list_of_values(source: object, column: str | None, words: str) -> None:
    with pytest.raises(DatasetError, match=re.escape(words)):
        dataset_of(source, column)


@pytest.mark.parametrize(
    "counts",
    [
        pd.Series(PETS).value_counts(normalize=True),
        pd.Series([3, 3, 5], dtype="Int64").value_counts(),
        pd.Series([3, 3, 5], name="age").value_counts(normalize=True),
        pd.Series(PETS).groupby(PETS).size(),
        pd.Series([3, 1], index=pd.Categorical(["cat", "dog"])),
        pd.Series([3, 3, 5]).groupby(pd.Series([7, 7, 8], name="age")).size(),
        pd.Series([True, True, False]).value_counts().rename("users"),
        pd.Series(pd.to_datetime(["2020", "2020", "2021"])).value_counts().rename("users"),
    ],
)
def test_counts_in_a_series_are_not_taken_for_values(counts: Any) -> None:
    with pytest.raises(DatasetError, match=r"dict\(series\) for counts, series\.to_numpy\(\)"):
        dataset_of(counts)
    pets = dataset_of(pd.Series(PETS).value_counts())
    assert (pets.items, pets.counts.tolist()) == (("cat", "dog", "newt"), [3, 2, 1])
    values = pd.Series([3, 3, 5, 7], name="age")
    assert dataset_of(values[values < 7]).counts.tolist() == [2, 1]


def test_counts_of_a_mapping_are_integers_of_a_sum_below_two_to_the_63() -> None:
    assert dataset_of(dict(pd.Series(["cat", "dog", "cat"]).value_counts())).items == ("cat", "dog")
    for counts in (
        [2**63 - 1, 2**63 - 1, 12],
        [1.9, 1, 1],
        [2**64, 1, 1],
        [True, 2, 3],
        [-1, 2, 3],
    ):
        with pytest.raises(DatasetError, match="data: counts must"):
            dataset_of(dict(zip("abc", counts, strict=True)))
    with pytest.raises(DatasetError, match=r"entry|float64"):
        Dataset("pets", ("cat", "dog"), np.array([1.9, 1.0]), "a survey")


@pytest.mark.parametrize(
    "values",
    [
        pd.Series(["a", 1, "a"], dtype=object),
        pd.cut(pd.Series([1, 9, 1]), 2),
        pd.Series([1j, 2, 1j]),
        pd.Series(pd.arrays.SparseArray([0, 1, 0])),
        pd.Series(pd.PeriodIndex(["2020", "2021", "2020"], freq="D")),
    ],
)
def test_series_that_arrow_does_not_read_is_counted(values: pd.Series) -> None:
    assert sorted(dataset_of(values).counts.tolist()) == [1, 2]


def test_counts_of_few_users_and_masked_values_are_left_out() -> None:
    assert dataset_of({"a": 6000, "b": 0, "newt": 5, "c": 100}, least=100).items == ("a", "c")
    masked = np.ma.masked_array(["a", "b", "c"], mask=[False, False, True])
    assert dataset_of(masked).items == ("a", "b")
    frame = pd.DataFrame({"x": list("abab")})
    assert dataset_of(frame.value_counts()).items == ("a", "b")
