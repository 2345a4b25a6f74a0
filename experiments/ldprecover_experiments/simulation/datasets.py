"""Data sets from files and from values in memory; no library of frames is required."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ldprecover._checks import did_you_mean
from ldprecover_client import DATASETS, Dataset, DatasetError, load_dataset
from ldprecover_client.datasets import count_values, label_of
from ldprecover_client.tables import COUNT, ITEM
from ldprecover_experiments.simulation.synthetic_data import WORLDS

NAMES = (*DATASETS, *WORLDS)
"""The names of the shipped data sets and the synthetic ones."""


def dataset_of(
    source: Any,
    column: str | None = None,
    *,
    name: str | None = None,
    encoding: str = "utf-8",
) -> Dataset:
    """Return a data set: the number of users that hold each item.

    `source` is the name of a data set in NAMES, a file, or values in memory, one a user.

    - A mapping of labels to counts, taken as they are.
    - A text, CSV or Parquet file, as `load_dataset` takes it, in `encoding`.
    - A frame of pandas or polars or an Arrow table with the columns `item` (or `label`) and
      `count` (or `users`), taken as they are; or with one column, or `column`, of values.
    - A list, a tuple, a generator, a Counter, a Series or Categorical of pandas or polars, an Arrow
      array, a numpy array, or anything else with `__arrow_c_stream__`, `__arrow_c_array__` or
      `to_numpy`. The counts of `series.value_counts()` by text are taken as counts; other numbers
      by text are an error.

    Values become labels as text, bytes as UTF-8, whole floats without their ".0". The items are
    sorted by name; values that look the same are one item; missing and blank values are left out,
    and the source says how many. `name` is what results call data in memory: by default the
    column's own name, or "data".

    Raises DatasetError.

        dataset_of({"cat": 6000, "dog": 3000, "newt": 500})
        dataset_of(np.array(["cat", "dog", "cat"]), name="pets")
    """
    if isinstance(source, Dataset):
        return source
    if isinstance(source, str) and source in WORLDS and column is None:
        return WORLDS[source]()
    if isinstance(source, str | os.PathLike):
        if source not in NAMES and not Path(source).exists():
            raise DatasetError(
                f"there is no file {source}, and no data set of that name: {', '.join(NAMES)}"
                f"{did_you_mean(source, NAMES)}"
            )
        return load_dataset(source, column, encoding=encoding)
    called = str(name or column or getattr(source, "name", None) or "data")
    if isinstance(source, Mapping):
        return _as_they_are(called, source, list(source.values()), "values in memory")
    index = getattr(getattr(source, "index", None), "dtype", None)  # of a pandas Series
    is_counted = getattr(source, "name", "") in ("count", "proportion")  # by `value_counts`
    is_label = index is not None and (index.kind not in "iu" or source.index.name is not None)
    if is_label and source.name == "count" and source.dtype.kind in "iu":
        counts = Counter(dict(zip(source.index, source.tolist(), strict=True)))
        return count_values(called, counts, "values in memory")
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
    elif names is not None and len(names) == 1:
        source = source[names[0]]
    elif names is not None:
        item, count = (_one_of(called, kind, list(names)) for kind in (ITEM, COUNT))
        items, counts = np.asarray(source[item]), np.asarray(source[count])
        return _as_they_are(called, items.tolist(), counts, origin)
    return count_values(called, _values(called, source), origin)


def _one_of(called: str, kind: tuple[str, ...], names: Sequence[object]) -> object:
    chosen = [name for name in names if name in kind]
    if len(chosen) == 1:
        return chosen[0]
    fault = f"has both columns {' and '.join(kind)}" if chosen else f"has no column {kind[0]!r}"
    raise DatasetError(
        f"{called}: a table that {fault} needs the name of the column to count, or the columns "
        "item and count"
    )


def _as_they_are(name: str, items: Iterable[Any], counts: Any, source: str) -> Dataset:
    return Dataset(name, tuple(map(label_of, items)), counts, source)


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
    if hasattr(source, "__array__"):  # also a Categorical
        source = np.asarray(source)
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
