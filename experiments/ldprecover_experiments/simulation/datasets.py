"""Data sets from files and from values in memory; no library of frames is required."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ldprecover._checks import check_whole, did_you_mean
from ldprecover_client import DATASETS, Dataset, DatasetError, load_dataset
from ldprecover_client.datasets import count_values, label_of, table_dataset
from ldprecover_client.tables import Row, Table, column_key
from ldprecover_experiments.simulation.synthetic_data import WORLDS

_ORIGIN = "values in memory"

NAMES = (*DATASETS, *WORLDS)
"""The names of the shipped data sets and the synthetic ones."""


def dataset_of(
    source: Any,
    column: str | None = None,
    *,
    name: str | None = None,
    encoding: str = "utf-8",
    as_is: bool = False,
    least: int = 1,
) -> Dataset:
    """Return a data set: the number of users that hold each item.

    `source` is the name of a data set in NAMES, a file, or values in memory, one a user.

    - A mapping of labels to counts, taken as they are.
    - A text, CSV or Parquet file, as `load_dataset` takes it, in `encoding`, and `as_is`.
    - A frame of pandas or polars or an Arrow table, as a file of such columns.
    - A list, a tuple, a generator, a Counter, a Series or Categorical of pandas or polars, an Arrow
      array, a numpy array, or anything else with `__arrow_c_stream__`, `__arrow_c_array__` or
      `to_numpy`. The counts of `series.value_counts()` by text are taken as counts; other numbers
      by text are an error.

    Values become labels as text, bytes as UTF-8, whole floats without their ".0". The items are
    sorted by name; values that look the same are one item; missing and blank values and those of
    fewer than `least` users are left out, and the source says how many. `name` is what results call
    data in memory: by default the column's own name, or "data".

    Raises DatasetError.

        dataset_of({"cat": 6000, "dog": 3000, "newt": 500})
        dataset_of(np.array(["cat", "dog", "cat"]), name="pets")
    """
    data = _dataset(source, column, name, encoding, as_is, least)
    least = check_whole("least", least, 1)
    is_frequent = data.counts >= least
    if least == 1 or is_frequent.all():
        return data
    items = tuple(item for item, keep in zip(data.items, is_frequent, strict=True) if keep)
    rare = f"{data.source}; {len(data.items) - len(items)} of fewer than {least} users left out"
    return Dataset(data.name, items, data.counts[is_frequent], rare)


def _dataset(
    source: Any, column: str | None, name: str | None, encoding: str, as_is: bool, least: int
) -> Dataset:
    if isinstance(source, Dataset):
        return source
    if isinstance(source, bytes | bytearray):
        raise DatasetError("bytes are no values: write [b'tea', b'milk'], one a user")
    if isinstance(source, str) and source in WORLDS and column is None:
        return WORLDS[source]()
    if isinstance(source, str | os.PathLike):
        if source not in NAMES and not Path(source).exists():
            raise DatasetError(
                f"there is no file {source}, and no data set of that name: {', '.join(NAMES)}"
                f"{did_you_mean(source, NAMES)}"
            )
        return load_dataset(source, column, encoding=encoding, as_is=as_is, least=least)
    called = str(name or column or getattr(source, "name", None) or "data")
    if isinstance(source, Mapping):
        numbers: Any = list(source.values())
        return Dataset(called, tuple(map(label_of, source)), numbers, _ORIGIN)
    if callable(getattr(type(source), "collect", None)):
        raise DatasetError(
            f"{called}: a {type(source).__name__} holds no values yet; collect it first"
        )
    names = getattr(source, "column_names", getattr(source, "columns", None))
    if names is not None:
        if len({*map(str, names)}) < len(names) or not len(names):
            raise DatasetError("the columns of a frame must be one or more, each of another name")
        if column is not None and column_key(column) not in map(column_key, names):
            present = (
                did_you_mean(column, map(str, names)) or f"; it has {', '.join(map(str, names))}"
            )
            raise DatasetError(f"{name or 'data'} has no column {column!r}{present:.200}")
        return table_dataset(
            _frame(called, {name: source[name] for name in names}), column, _ORIGIN, least
        )
    if column is not None:
        raise DatasetError(f"there is no column {column!r}")
    if _by_label(source) and source.name == "count" and source.dtype.kind in "iu":
        counts = Counter(dict(zip(source.index, source.tolist(), strict=True)))
        return count_values(called, counts, _ORIGIN, least)
    return count_values(called, _values(called, source), _ORIGIN, least)


def _by_label(source: Any) -> bool:
    """Return whether the index of a Series or frame of pandas may be labels."""
    index = getattr(getattr(source, "index", None), "dtype", None)
    return index is not None and (index.kind not in "iu" or source.index.name is not None)


def _frame(name: str, columns: Mapping[Any, Any]) -> Table:
    series = [*columns.values()]

    def rows(at: Sequence[int]) -> Iterator[Row]:
        cells = zip(*(np.asarray(series[i]).tolist() for i in at), strict=True)
        return ((f"{name}, row {number}", row) for number, row in enumerate(cells, 1))

    return Table(name, tuple(map(str, columns)), rows, values=lambda at: _values(name, series[at]))


def _values(name: str, source: Any) -> Iterable[Any]:
    is_counted = getattr(source, "name", "") in ("count", "proportion")  # by `value_counts`
    if (_by_label(source) or is_counted) and source.dtype.kind in "iuf":
        raise DatasetError(
            f"{name}: numbers by label may be counts or values: dict(series) for counts, "
            "series.to_numpy() for one value a user"
        )
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
    if hasattr(source, "__array__"):  # also a Categorical
        source = np.asanyarray(source)  # a masked value is None in its list
    if isinstance(source, np.ndarray):
        if source.ndim != 1:
            raise DatasetError(f"{name}: values must be one-dimensional, one a user")
        # A list of nanoseconds would be one of integers, and its missing times a value.
        values: list[Any] = list(source) if source.dtype.kind in "mM" else source.tolist()
        return values
    if isinstance(source, Iterable) and not arrow:
        return source
    needed = (
        "reading Arrow data needs pyarrow"
        if arrow
        else "values must be a list, a file's name, a Series or an Arrow array"
    )
    raise DatasetError(f"{name}: {needed}, not {type(source).__name__}")
