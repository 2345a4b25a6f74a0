"""Item counts for simulated users: three data sets of the package, or a CSV file."""

from __future__ import annotations

import csv
import gzip
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from io import TextIOWrapper
from os import PathLike
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from ldprecover._checks import check_whole, counts_of
from ldprecover.errors import ParameterError
from ldprecover.items import label_key, quoted
from ldprecover.protocols import MAX_DOMAIN_SIZE
from ldprecover.rounds.parameters import in_order, label_fault, labels_fault, look_alikes
from ldprecover_client.errors import DatasetError

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


def load_dataset(name_or_path: str | PathLike[str], column: str | None = None) -> Dataset:
    """Return a data set by name ("cities", "fire", "emoji") or from a CSV file with a header.

    Without `column` the file has the columns `item` and `count`, one row an item, in the items'
    order. With `column` each row is one user, and the values of that column are counted: the most
    frequent first, ties by label; values that look the same are one item, labelled as most have it.
    Blank values are left out, and the source says how many. A file
    may be gzipped (.gz). Raises DatasetError with the place and the reason.

        load_dataset("survey.csv", column="city").counts
    """
    if isinstance(name_or_path, str) and name_or_path in DATASETS:
        file, source = DATASETS[name_or_path]
        if column is not None:
            raise DatasetError(
                f"{name_or_path} is counted already; a column is for files of one row a user"
            )
        packaged = files("ldprecover_client") / "data" / file
        with packaged.open("rb") as data, TextIOWrapper(data, "utf-8-sig", newline="") as text:
            items, counts = _read_counts(name_or_path, csv.reader(text))
        return Dataset(name_or_path, items, counts, source)
    path = Path(name_or_path)
    with _translated_errors(name_or_path), _open(path) as text:
        rows = csv.reader(text, strict=True)
        if column is None:
            items, counts = _read_counts(path.name, rows)
            return Dataset(path.name, items, counts, f"the file {path.name}")
        items, counts, blank = count_values(cell for _, (cell,) in _cells(path.name, rows, column))
    if not items:
        raise DatasetError(f"{path.name}: column {column!r} holds no value")
    left_out = f"; {blank} rows without one left out" if blank else ""
    return Dataset(path.name, items, counts, f"column {column} of the file {path.name}{left_out}")


def _open(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


@contextmanager
def _translated_errors(name: str | PathLike[str]) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise DatasetError(
            f"there is no file {name}, and no data set of that name: {', '.join(DATASETS)}"
        ) from None
    except UnicodeDecodeError:
        raise DatasetError(f"{name} is not text in UTF-8") from None
    except (csv.Error, EOFError) as error:
        raise DatasetError(f"{name} is not a CSV file: {error}") from None
    except OSError as error:
        raise DatasetError(f"{name} cannot be read: {error.strerror or error}") from None


def _cells(name: str, rows: Iterator[list[str]], *columns: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the place of each row that is not empty, and its cells of these columns."""
    for first, row in enumerate(rows, start=1):  # noqa: B007  used below
        header = [label_key(cell) for cell in row]
        if any(header):
            break
    else:
        raise DatasetError(f"{name} is empty")
    for column in (keys := [*map(label_key, columns)]):
        if column not in header:
            # The first line of any other file may be a secret rather than a header.
            if name.endswith((".csv", ".csv.gz")):
                present = ", ".join(cell[:80] for cell in header[:20])
                present += ", …" if len(header) > 20 else ""
            else:
                present = "one column" if len(header) == 1 else f"{len(header)} columns"
            hint = (
                "; for a file of one row a user, name the column to count"
                if column in ("item", "count")
                else ""
            )
            raise DatasetError(f"{name} has no column {column!r}; it has {present}{hint}")
        if header.count(column) > 1:
            raise DatasetError(f"{name} has several columns {column!r}: rename all but one")
    positions = [header.index(key) for key in keys]
    for number, row in enumerate(rows, start=first + 1):
        place = f"{name}, row {number}"
        if row:
            if len(row) <= max(positions):
                raise DatasetError(f"{place}: too few cells")
            if any(row[len(header) :]):
                raise DatasetError(f"{place}: more cells than columns; quote one with a comma")
            yield place, [row[position].strip() for position in positions]


def _read_counts(name: str, rows: Iterator[list[str]]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    counts: dict[str, int] = {}
    first: dict[str, tuple[str, str]] = {}
    for place, (item, count) in _cells(name, rows, "item", "count"):
        if not item:
            raise DatasetError(f"{place}: the item is blank")
        key = label_key(item)
        if (fault := label_fault(item, key)) is not None:
            raise DatasetError(f"{place}: the item {fault}")
        before, same = first.setdefault(key, (place, item))
        if before != place:
            raise DatasetError(
                f"{place}: the item {quoted(item)} was there before, in {before}"
                f"{look_alikes(same, item)}"
            )
        if not _COUNT.fullmatch(count):
            raise DatasetError(
                f"{place}: the count must be an integer of 0 or more and below 10^18, not "
                f"{quoted(count)}"
            )
        counts[item] = int(count)
    if not counts:
        raise DatasetError(f"{name} has a header and no row")
    return tuple(counts), np.array(list(counts.values()), dtype=np.int64)


def count_values(values: Iterable[str]) -> tuple[tuple[str, ...], NDArray[np.int64], int]:
    """Return the items of users' values, their counts, and the number of blank values.

    `values` may be a Counter. The most frequent item is first, ties by label. Values with one
    `label_key` are one item, whose label is the most frequent of them.
    """
    counts: Counter[str] = Counter()
    labels: dict[str, str] = {}
    for value, times in Counter(values).most_common():
        key = label_key(value)
        counts[labels.setdefault(key, value if key else "")] += times
    blank = counts.pop("", 0)
    items = sorted(counts, key=lambda item: (-counts[item], item))
    return tuple(items), np.array([counts[item] for item in items], dtype=np.int64), blank
