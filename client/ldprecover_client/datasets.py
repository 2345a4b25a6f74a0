"""Lists of items, and item counts for simulated users, from the package's data sets or a file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from importlib.resources import as_file, files
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldprecover._checks import check_whole, counts_of
from ldprecover.errors import ParameterError
from ldprecover.items import label_key, quoted
from ldprecover.protocols import MAX_DOMAIN_SIZE
from ldprecover.rounds.parameters import (
    MAX_LABEL,
    in_order,
    label_fault,
    labels_fault,
    look_alikes,
)
from ldprecover_client.errors import DatasetError
from ldprecover_client.review import review
from ldprecover_client.tables import COUNT, ITEM, Row, Table, open_table

DATASETS = {
    "cities": (
        "us_cities.csv",
        (
            "Population of the 102 largest US cities, 2020 census; public domain. In place of the "
            "paper's IPUMS cities."
        ),
    ),
    "fire": (
        "sf_fire_units.csv",
        (
            "Calls each San Francisco Fire Department unit answered in one week; DataSF, PDDL. For "
            "the paper's Fire."
        ),
    ),
    "emoji": (
        "emoji.csv",
        (
            "Uses of 1,496 emoji; MIT, github.com/Marvin-huoshan/MDPA_LDP, the data of Li et al., "
            "ACM CCS 2025."
        ),
    ),
}
"""Name -> (file, source and licence)."""

_COUNT = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, eq=False)
class Dataset:
    """The number of users with each item.

    `items` are 2 to 100,000 labels, as `RoundParameters` takes them; `counts`,
    shape (d,), integers of 0 or more, not all zero; `source` names their origin. Raises
    DatasetError.

        Dataset("pets", ("cat", "dog"), np.array([6, 4]), "a survey").frequencies
    """

    name: str
    items: tuple[str, ...]
    counts: NDArray[np.int64]
    source: str

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "items", in_order(self.items))
            check_whole("the number of items", len(self.items), 2, MAX_DOMAIN_SIZE)
            counts = counts_of(self.counts, "counts").copy()
        except ParameterError as error:
            raise DatasetError(f"{self.name}: {error}") from None
        if counts.shape != (len(self.items),):
            raise DatasetError(f"{self.name}: there must be one count for each item")
        if (fault := labels_fault(self.items)) is not None:
            raise DatasetError(f"{self.name}: {fault}")
        if not counts.any():
            raise DatasetError(f"{self.name}: counts must be 0 or more, and not all 0")
        counts.flags.writeable = False
        object.__setattr__(self, "counts", counts)

    def __repr__(self) -> str:
        return f"Dataset({self.name}, {len(self.items):,} items, {self.counts.sum():,} users)"

    @property
    def frequencies(self) -> NDArray[np.float64]:
        """Share of each item, of shape (d,)."""
        shares: NDArray[np.float64] = self.counts / self.counts.sum(dtype=np.float64)
        return shares


def load_items(
    path: str | PathLike[str],
    column: str | None = None,
    *,
    encoding: str = "utf-8",
    as_is: bool = False,
) -> tuple[str, ...]:
    """Return the labels of a list, in the order of the file.

    A .txt file has one label a line. A .csv or .tsv file, with commas, semicolons, tabs or bars, or
    a Parquet file has one column, or several of which `column` is taken, or else the one called
    `item` or `label`. A CSV file begins with the names of its columns. Blank lines are left out.
    `encoding` is utf-16 or one of Python's that has ASCII. A file may be gzipped (.gz). Raises
    DatasetError with file, line and text, also for a label that is there twice, for a file of
    another kind, and for a CSV file of one column whose name is neither `column`, `item` nor
    `label`: it may be an item. Labels that may be no items, such as sums, notes and text in another
    encoding, raise it unless they are taken `as_is`.

        load_items("products.csv", "Produkt", encoding="cp1252")
    """
    labels = _Labels()
    with open_table(Path(path), column, encoding) as table:
        hint = "; name the column of the items with --column"
        at = 0
        if column is not None or len(table.header) > 1:
            at = table.need(ITEM if column is None else (column,), hint)
        for place, (cell,) in table.rows([at]):
            if label := label_of(cell):
                labels.add(place, label)
    if not labels.places:
        raise DatasetError(f"{table.name} has no item")
    review(table, at, labels.places, as_is)
    return tuple(labels.places)


def load_dataset(
    name_or_path: str | PathLike[str],
    column: str | None = None,
    *,
    encoding: str = "utf-8",
    as_is: bool = False,
    least: int = 1,
) -> Dataset:
    """Return a data set by name ("cities", "fire", "emoji") or from a file as `load_items` reads.

    A file with a column `count` (or `users`) has one row an item, in the items' order: `column`,
    the column `item` (or `label`), or the only other one. Otherwise each row is one user, and the
    values of `column`, or of a file's only one, are counted. Then items are sorted by name, because
    their order must not tell which value is frequent; values that look the same are one item,
    labelled as most have it. Blank values and those of fewer than `least` rows are left out, and
    the source says how many. Raises DatasetError with the place and the reason, also for `column`
    beside others if it has no value twice: then another one may have the counts.

        load_dataset("survey.csv", column="city").counts
    """
    if isinstance(name_or_path, str) and name_or_path in DATASETS:
        file, source = DATASETS[name_or_path]
        if column is not None:
            raise DatasetError(
                f"{name_or_path} is counted already; a column is for files of one row a user"
            )
        with as_file(files("ldprecover_client") / "data" / file) as packaged:
            shipped = load_dataset(packaged)
        return Dataset(name_or_path, shipped.items, shipped.counts, source)
    path = Path(name_or_path)
    absent = f", and no data set of that name: {', '.join(DATASETS)}"
    with open_table(path, column, encoding, absent) as table:
        source = f"the file {table.name}"
        return table_dataset(table, column, source, least, as_is)


def table_dataset(
    table: Table, column: str | None, source: str, least: int, as_is: bool = True
) -> Dataset:
    """Return the data set of a table, as `load_dataset` states it. Raises DatasetError."""
    count = table.find(COUNT)
    if column is not None:
        item = table.need((column,))
    elif len(table.header) < 2:
        item = count = 0
    elif len(table.header) == 2 and count is not None:
        item = 1 - count
    else:
        hint = "; call the columns item and count, or name the column to count, one row a user"
        item, count = table.need(ITEM, hint), table.need(COUNT, hint)
    if count is not None and count != item:
        data, labels = _read_counts(table.name, table.rows([item, count]), source)
        review(table, item, labels, as_is)
        return data
    source = source if column is None else f"column {column} of {source}"
    places: dict[Any, str] = {}

    def cells() -> Iterator[Any]:
        for place, (cell,) in table.rows([item]):
            places.setdefault(cell, place)
            yield cell

    values = table.values(item) if table.values else cells()
    data = count_values(table.name, values, source, least)
    if len(table.header) > 1 and data.counts.max() == 1:
        raise DatasetError(
            f"{table.name}: no value of {column} is there twice; if another column has the counts, "
            "call it count"
        )
    labels = {label_of(cell): place for cell, place in places.items()}
    review(table, item, {label: labels[label] for label in data.items if label in labels}, as_is)
    return data


class _Labels:
    """Distinct labels in their order, and the place of each."""

    def __init__(self) -> None:
        self.places: dict[str, str] = {}
        self._first: dict[str, str] = {}

    def add(self, place: str, label: str) -> None:
        """Add a label. Raises DatasetError for text that is no label, or was there before."""
        key = label_key(label)
        if (fault := label_fault(label, key)) is not None:
            raise DatasetError(f"{place}: the item {fault}")
        if len(label) > MAX_LABEL:
            raise DatasetError(
                f"{place}: the item {quoted(label)} has {len(label)} characters, and a label has "
                f"at most {MAX_LABEL}"
            )
        if (before := self._first.setdefault(key, label)) in self.places:
            raise DatasetError(
                f"{place}: the item {quoted(label)} was there before, in {self.places[before]}"
                f"{look_alikes(before, label)}"
            )
        if len(self.places) == MAX_DOMAIN_SIZE:
            raise DatasetError(f"{place}: a list has at most {MAX_DOMAIN_SIZE:,} items")
        self.places[label] = place


def _read_counts(name: str, rows: Iterable[Row], source: str) -> tuple[Dataset, dict[str, str]]:
    labels, counts = _Labels(), []
    for place, cells in rows:
        item, count = map(label_of, cells)
        if not item:
            raise DatasetError(f"{place}: the item is blank")
        labels.add(place, item)
        if not _COUNT.fullmatch(count):
            raise DatasetError(
                f"{place}: the count must be an integer of 0 or more and below 10^18, without "
                f"separators, not {quoted(count)}"
            )
        counts.append(int(count))
    if not counts:
        raise DatasetError(f"{name} has a header and no row")
    data = Dataset(name, tuple(labels.places), np.array(counts, np.int64), source)
    return data, labels.places


def count_values(name: str, values: Iterable[Any], source: str, least: int) -> Dataset:
    """Return the data set of users' values, which may be a Counter, with the items sorted by name.

    Values become labels by `label_of`, and those with one `label_key` are one item, whose label is
    the most frequent of them. Blank values and those of fewer than `least` users are left out, and
    the source says how many. Raises DatasetError, and ParameterError for no integer `least`.
    """
    check_whole("least", least, 1)
    counts_by_label: Counter[str] = Counter()
    try:
        for value, times in (values if isinstance(values, Counter) else Counter(values)).items():
            counts_by_label[label_of(value)] += times
    except TypeError:
        raise DatasetError(f"{name}: every value must be a text or a number") from None
    counts: Counter[str] = Counter()
    labels: dict[str, str] = {}
    for label, times in counts_by_label.most_common():
        key = label_key(label)
        counts[labels.setdefault(key, label if key else "")] += times
    if blank := counts.pop("", 0):
        source += f"; {blank} blank ones left out"
    if not counts:
        raise DatasetError(f"{source} holds no value")
    items = [item for item in counts if counts[item] >= least]
    if rare := len(counts) - len(items):
        source += f"; {rare} values of fewer than {least} users left out"
    if len(items) < 2 <= len(counts):
        raise DatasetError(
            f"{name}: only {len(items)} of {len(counts)} values have at least {least} users; "
            "least 1 takes all, and a column of counts must be called count"
        )
    if all(item.isdecimal() for item in items):
        items.sort(key=int)
    else:
        items.sort(key=lambda item: (item.casefold(), item))
    source += "; sorted by name"
    return Dataset(name, tuple(items), np.array([counts[item] for item in items]), source)


def label_of(value: Any) -> str:
    """Return a value as a label: text without outer spaces, bytes as UTF-8, whole floats without
    their ".0", of an Enum its value, and "" for a missing value, such as \\N of a database's dump.
    Raises DatasetError.
    """
    if isinstance(value, Enum):
        return label_of(value.value)
    if isinstance(value, str):
        return "" if value.strip() == r"\N" else value.strip()
    if isinstance(value, tuple):  # by `value_counts` of a frame
        if len(value) == 1:
            return label_of(value[0])
        raise DatasetError(
            f"a value must be a text or a number, not {value!r:.40}; dict(pairs) gives counts"
        )
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
