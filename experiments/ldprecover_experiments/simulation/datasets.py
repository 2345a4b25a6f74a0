"""Data sets from files, data frames and Arrow arrays; none of their libraries is required."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ldprecover._checks import did_you_mean
from ldprecover_client import DATASETS, Dataset, DatasetError, load_dataset
from ldprecover_client.datasets import count_values
from ldprecover_experiments.simulation.synthetic_data import WORLDS

NAMES = (*DATASETS, *WORLDS)
"""The names of the shipped data sets and the synthetic ones."""

_PARQUET = (".parquet", ".pq")


def dataset_of(source: Any, column: str | None = None, *, name: str | None = None) -> Dataset:
    """Return a data set: the number of users that hold each item.

    `source` is the name of a data set in NAMES, a file, or values in memory, one a user.

    - A mapping of labels to counts, taken as they are.
    - A CSV file: as `load_dataset` takes it. A Parquet file (.parquet, .pq): `column` is the one to
      count, or its columns `item` and `count` are taken as they are.
    - A frame of pandas or polars or an Arrow table with the columns `item` and `count`, taken as
      they are.
    - A Series of pandas or polars, an Arrow array, a numpy array, or anything else with
      `__arrow_c_stream__`, `__arrow_c_array__` or `to_numpy`; a frame or an Arrow table of them
      with `column`.

    Values become labels as text, bytes as UTF-8, whole floats without their ".0". The items are
    ordered by how many hold them, ties by label; values that look the same are one item;
    missing and blank values are left out, and the source says how many. `name` is what results call
    data in memory: by default the column's own name, or "data".

    Raises DatasetError.

        dataset_of({"cat": 6000, "dog": 3000, "newt": 500})
        dataset_of(np.array(["cat", "dog", "cat"]), name="pets")
    """
    if isinstance(source, Dataset):
        return source
    if isinstance(source, str) and source in WORLDS and column is None:
        return WORLDS[source]()
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if path.suffix in _PARQUET:
            return _of_parquet(path, column)
        if source not in NAMES and not path.exists():
            raise DatasetError(
                f"there is no file {source}, and no data set of that name: {', '.join(NAMES)}"
                f"{did_you_mean(source, NAMES)}"
            )
        return load_dataset(source, column)
    called = str(name or column or getattr(source, "name", None) or "data")
    if isinstance(source, Mapping):
        return _as_they_are(called, source, list(source.values()), "values in memory")
    index = getattr(getattr(source, "index", None), "dtype", None)  # of a pandas Series
    is_counted = getattr(source, "name", "") in ("count", "proportion")  # by `value_counts`
    is_label = index is not None and (index.kind not in "iu" or source.index.name is not None)
    if (is_label or is_counted) and source.dtype.kind in "iuf":
        raise DatasetError(
            f"{called}: numbers by label may be counts or values: dict(series) for counts, "
            "series.to_numpy() for one value a user"
        )
    if callable(getattr(type(source), "collect", None)):
        raise DatasetError(
            f"{called}: a {type(source).__name__} holds no values yet; collect it first"
        )
    return _of_values(called, source, column, "values in memory")


def _of_values(called: str, source: Any, column: str | None, origin: str) -> Dataset:
    names = getattr(source, "column_names", getattr(source, "columns", None))
    if column is not None:
        if column not in (() if names is None else names):
            raise DatasetError(f"there is no column {column!r}")
        source = source[column]
    elif names is not None:
        if not {"item", "count"} <= set(names):
            raise DatasetError(
                f"{called}: a table of several columns needs the name of the column to count, or "
                "the columns item and count"
            )
        items, counts = (np.asarray(source[each]) for each in ("item", "count"))
        return _as_they_are(called, items.tolist(), counts, origin)
    return _counted(called, _values(called, source), origin)


def _of_parquet(path: Path, column: str | None) -> Dataset:
    if find_spec("pyarrow") is None:
        raise DatasetError(
            f"{path} is a Parquet file, which needs pyarrow: pip install 'ldprecover[experiments]'"
        )
    from pyarrow import ArrowException, parquet

    try:
        columns = [column] if column else ["item", "count"]
        present = parquet.read_schema(path).names
        for each in columns:
            if each not in present:
                hint = "" if column else "; name the column to count"
                raise DatasetError(
                    f"{path.name} has no column {each!r}; it has {', '.join(present[:20])}{hint}"
                )
        table = parquet.read_table(path, columns=columns)
    except OSError as error:
        raise DatasetError(
            f"{path} cannot be read: {os.strerror(error.errno) if error.errno else error}"
        ) from None
    except ArrowException as error:
        raise DatasetError(f"{path} is not a Parquet file: {error}") from None
    part = f"column {column} of " if column else ""
    return _of_values(path.name, table, column, f"{part}the file {path.name}")


def _as_they_are(name: str, items: Iterable[Any], counts: Any, source: str) -> Dataset:
    return Dataset(name, tuple(map(_label, items)), counts, source)


def _values(name: str, source: Any) -> Iterable[Any]:
    arrow = hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__")
    if arrow and find_spec("pyarrow") is not None:
        import pyarrow as pa

        try:
            has_chunks = hasattr(source, "__arrow_c_stream__")
            array = pa.chunked_array(source) if has_chunks else pa.array(source)
            counts = array.value_counts().to_pylist()  # without a copy
            return Counter({each["values"]: each["counts"] for each in counts})
        except (pa.ArrowException, TypeError):  # mixed types, which numpy reads
            source = np.asarray(source)
    if hasattr(source, "to_numpy"):
        source = source.to_numpy()
    if isinstance(source, np.ndarray):
        if source.ndim != 1:
            raise DatasetError(f"{name}: values must be one-dimensional, one a user")
        # A list of nanoseconds would be one of integers, and its missing times a value.
        values: list[Any] = list(source) if source.dtype.kind in "mM" else source.tolist()
        return values
    needed = (
        "reading Arrow data needs pyarrow"
        if arrow
        else "values must be a file's name, a Series or an Arrow array"
    )
    raise DatasetError(f"{name}: {needed}, not {type(source).__name__}")


def _counted(name: str, values: Iterable[Any], source: str) -> Dataset:
    counts_by_item: Counter[str] = Counter()
    try:
        counter = values if isinstance(values, Counter) else Counter(values)
        for value, times in counter.items():
            counts_by_item[_label(value)] += times
    except TypeError:
        raise DatasetError(f"{name}: every value must be a text or a number") from None
    items, counts, blank = count_values(counts_by_item)
    left_out = f"; {blank} blank ones left out" if blank else ""
    return Dataset(name, items, counts, source + left_out)


def _label(value: Any) -> str:
    if value is None or value != value:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, bytes):
        try:
            return value.decode().strip()
        except UnicodeDecodeError:
            raise DatasetError("values that are bytes must be text in UTF-8") from None
    return str(value).strip()
