"""Files with lists and tables: text, CSV and Parquet, read row by row."""

from __future__ import annotations

import csv
import gzip
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import KW_ONLY, dataclass
from importlib.util import find_spec
from io import TextIOWrapper
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, cast

from ldprecover.items import label_key, quoted
from ldprecover_client.errors import DatasetError

ENCODINGS = {"utf-8": "utf-8-sig", "cp1252": "cp1252", "utf-16": "utf-16"}
"""The encodings of files, and Python's names for them."""

ITEM = ("item", "label")
"""The names of a column of items."""
COUNT = ("count", "users")
"""The names of a column with the number of users of each item."""

_MIXED = re.compile("[ÂÃ][\xa0-ª¬-º¼-¿€-™]|â€.")
"""UTF-8 that is read as cp1252, but for what may end a quotation in it: Ã«, Ã»."""
_UTF_32 = (b"\xff\xfe\0\0", b"\0\0\xfe\xff")
_PARQUET = (".parquet", ".pq")
_SAMPLE = 1 << 16
_SIGNATURES = {
    b"PK\x03\x04": "a spreadsheet or ZIP file: save the sheet as CSV UTF-8",
    b"\xd0\xcf\x11\xe0": "an Excel file: save the sheet as CSV UTF-8",
    b"PAR1": "a Parquet file: name it .parquet",
    b"{": "JSON: give a text file, CSV or Parquet",
    b"\xef\xbb\xbf{": "JSON: give a text file, CSV or Parquet",
}


def column_key(name: object) -> str:
    """Return what the names of a column have in common: a spreadsheet may begin it large."""
    return label_key(str(name)).casefold()


Row = tuple[str, Sequence[Any]]
"""The place of a row, for errors, and its cells."""


@dataclass(frozen=True)
class Table:
    """The columns of a file. A list without a header has one column and no name in `header`.

    `rows` returns the cells at these positions, and the place of each row; `values`, if it is
    quicker, those of one position, or a Counter of them. `first` is the first line of a CSV file of
    one column if it may be a header or a value.
    """

    name: str
    header: tuple[str, ...]
    rows: Callable[[Sequence[int]], Iterator[Row]]
    _: KW_ONLY
    shows_header: bool = True
    first: str | None = None
    values: Callable[[int], Iterable[Any]] | None = None

    def check_header(self) -> None:
        """Raise DatasetError if the first line may be a header or a value."""
        if self.first is not None:
            shown = quoted(self.first)
            raise DatasetError(
                f"{self.name}: {shown} in the first line may be an item or the name of the column; "
                f"name the column with --column {shown}, or write a line above it: item"
            )

    def find(self, names: Sequence[str]) -> int | None:
        """Return the position of the column with one of these names; None without one.

        Raises DatasetError if several have one of them.
        """
        keys = [*map(column_key, names)]
        positions = [i for i, name in enumerate(self.header) if column_key(name) in keys]
        if len(positions) > 1:
            first, second = (self.header[i] for i in positions[:2])
            if column_key(first) == column_key(second):
                raise DatasetError(f"{self.name} has several columns {first!r}: rename all but one")
            raise DatasetError(
                f"{self.name} has both columns, {first!r} and {second!r}: name the one to take "
                "with --column, or rename one"
            )
        return positions[0] if positions else None

    def need(self, names: Sequence[str], hint: str = "") -> int:
        """Return the position of the column with one of these names. Raises DatasetError."""
        position = self.find(names)
        if position is None:
            present = ", ".join(name[:80] for name in self.header[:20])
            present += ", …" if len(self.header) > 20 else ""
            if len(self.header) == 1:
                hint = f": the names of the columns belong in the first line{hint}"
            if not self.shows_header:  # the first line of any other file may be a secret
                present = f"{len(self.header)} column{'s' if len(self.header) > 1 else ''}"
            raise DatasetError(f"{self.name} has no column {names[0]!r}; it has {present}{hint}")
        return position


@contextmanager
def open_table(
    path: Path, column: str | None = None, encoding: str = "utf-8", absent: str = ""
) -> Iterator[Table]:
    """Open a text, CSV or Parquet file by the end of its name, while the context lasts.

    A .txt file has one value a line. A .csv or .tsv file has cells between commas, semicolons or
    tabs, whichever fits `column`, the names of ITEM and COUNT, and the first lines. Files may end
    in .gz. Errors while it is read, also in the body of the context, become DatasetError; `absent`
    ends the one for a missing file.
    """
    if encoding not in ENCODINGS:
        raise DatasetError(f"encoding must be one of {', '.join(ENCODINGS)}, not {encoding!r}")
    try:
        if path.suffix in _PARQUET:
            yield _parquet(path)
            return
        with _bytes(path) as file:
            sample = cast("Any", file).peek(_SAMPLE)[:_SAMPLE]
            _check_kind(path.name, sample, encoding)
            codec = _codec(sample, encoding)
            with TextIOWrapper(file, codec, newline="") as text:
                lines = _unmixed(path, text) if encoding == "cp1252" else text
                yield _text_table(path, lines, sample.decode(codec, "ignore"), column)
    except FileNotFoundError:
        raise DatasetError(f"there is no file {path}{absent}") from None
    except UnicodeError:
        hint = "save it as UTF-8, and leave out --encoding"
        if encoding == "utf-8":
            hint = "name its encoding, --encoding cp1252 (spreadsheets on Windows) or utf-16"
        raise DatasetError(
            f"{_undecodable(path, encoding)} is not text in {encoding.upper()}: {hint}"
        ) from None
    except EOFError as error:
        raise DatasetError(f"{path} is not a CSV file: {error}") from None
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        reason = "it is a folder" if path.is_dir() else reason
        raise DatasetError(f"cannot read {path}: {reason}") from None


def _suffix(path: Path) -> str:
    return Path(path.stem).suffix if path.suffix == ".gz" else path.suffix


def _bytes(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path) if path.suffix == ".gz" else path.open("rb", _SAMPLE))


def _check_kind(name: str, sample: bytes, encoding: str) -> None:
    """Raise DatasetError if the first bytes are those of another kind of file or encoding."""
    for signature, kind in _SIGNATURES.items():
        if sample.startswith(signature):
            raise DatasetError(f"{name} is {kind}")
    if sample.startswith(_UTF_32) or 5 * sample.count(0) > 3 * len(sample):
        raise DatasetError(f"{name} is text in UTF-32: save it as UTF-8")
    wide = sample[:2] in (b"\xff\xfe", b"\xfe\xff") or 5 * sample.count(0) > len(sample)
    if wide and encoding != "utf-16":
        raise DatasetError(
            f"{name} is not text in {encoding.upper()} but in UTF-16: add --encoding utf-16"
        )
    if encoding == "cp1252" and not sample.isascii():
        with suppress(UnicodeDecodeError):
            # The sample may end within a character.
            sample[: len(sample) - 4 if len(sample) == _SAMPLE else None].decode()
            raise DatasetError(f"{name} is text in UTF-8, not cp1252: leave out --encoding")


def _codec(sample: bytes, encoding: str) -> str:
    """Return Python's name; UTF-16 without a byte order mark has most zeros in one half."""
    if encoding == "utf-16" and sample[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        high, low = sample[::2].count(0), sample[1::2].count(0)
        if high != low:
            return "utf-16-be" if high > low else "utf-16-le"
    return ENCODINGS[encoding]


def _unmixed(path: Path, text: Iterable[str]) -> Iterator[str]:
    """Yield lines of cp1252. Raises DatasetError for one of UTF-8."""
    for number, line in enumerate(text, 1):
        if _MIXED.search(line):
            shown = quoted(line.strip()) if _suffix(path) in (".csv", ".tsv", ".txt") else "it"
            raise DatasetError(
                f"{path.name}, line {number}: {shown} is UTF-8 in a file of cp1252: save all of "
                "the file in one encoding"
            )
        yield line


def _undecodable(path: Path, encoding: str) -> str:
    """Return the file, with the line and its text where decoding fails, for text and CSV files."""
    shown = _suffix(path) in (".csv", ".tsv", ".txt")
    with suppress(OSError, EOFError), _bytes(path) as lines:
        for number, line in enumerate(lines, 1):
            try:
                line.decode(encoding)
            except UnicodeDecodeError:
                if encoding == "utf-16":
                    break
                text = quoted(line.decode("cp1252", "replace").strip()) if shown else ""
                return f"{path.name}, line {number}{text and ': '}{text}"
    return path.name


def _cells(line: str, delimiter: str) -> list[str]:
    return next(csv.reader([line], delimiter=delimiter), [])


def _delimiter(lines: Sequence[str], column: str | None) -> str:
    """Return the delimiter that fits the given columns, then the lines, then has most columns."""
    names = {column_key(column)} if column else {*ITEM, *COUNT}

    def fit(delimiter: str) -> tuple[int, bool, int]:
        rows = [*csv.reader(lines, delimiter=delimiter)]
        header = {*map(column_key, rows[0])} if rows else set()
        sizes = {len(row) for row in rows if row}
        is_even = sizes != {1} and len(sizes) == 1
        return len(header & names), is_even, len(rows[0]) if rows else 0

    return max(",;\t", key=fit)


def _text_table(path: Path, text: Iterable[str], sample: str, column: str | None) -> Table:
    name, suffix = path.name, _suffix(path)
    lines = [line for line in sample.splitlines(keepends=True) if line.strip()]
    if len(lines) > 1 and len(sample) > 1000:
        lines.pop()  # it may be cut
    lines = lines[:100]
    marked = lines and re.match("sep=([,;\t])", lines[0])
    delimiter = marked[1] if marked else "\t" if suffix == ".tsv" else _delimiter(lines, column)
    if suffix in ("", ".txt") and column is None:
        fault = _table_like(lines, delimiter)
        if not fault:
            places = ((f"{name}, line {number}", line) for number, line in enumerate(text, 1))
            return Table(name, (), lambda _: ((place, [line.strip()]) for place, line in places))
        if suffix:
            matches = (i for i, line in enumerate(sample.splitlines(), 1) if fault in line)
            number = next(matches)
            raise DatasetError(
                f"{name}, line {number}: {quoted(fault)} is of a CSV file, not of a list with one "
                "item a line: name the file .csv, or the column with --column"
            )
    reader = csv.reader(text, delimiter=delimiter, strict=True)
    rows = _csv_rows(name, reader)
    place, first = next(rows, ("", []))
    if first and first[0].startswith("sep="):  # for Excel
        place, first = next(rows, ("", []))
    if not first:
        raise DatasetError(f"{name} is empty")
    is_name = column_key(first[0]) in ITEM
    if (
        len(first) == 1
        and not is_name
        and any(
            len({len(_cells(line, each)) for line in lines[1:]} | {1}) == 2
            and all(each in line for line in lines[1:])
            for each in ";\t"
        )
    ):
        raise DatasetError(
            f"{place}: {quoted(first[0].strip())} is above the names of the columns: delete it"
        )
    if len(first) == 1 and not is_name and column is None:
        at_first = first[0].strip()
        return Table(name, (), lambda _: _chosen((place, first), rows, [0]), first=at_first)
    header = tuple(cell.strip() for cell in first)
    shown = suffix in (".csv", ".tsv")
    return Table(
        name, header, lambda at: _chosen((place, first), rows, at, skip=1), shows_header=shown
    )


def _table_like(lines: Sequence[str], delimiter: str) -> str:
    """Return the first of these lines that is one of a CSV file rather than of a list, or ""."""
    rows = [_cells(line, delimiter) for line in lines]
    is_even = delimiter != "," and len(rows) > 1 and {1} != {*map(len, rows)} == {len(rows[0])}
    if rows and (
        is_even or lines[0].startswith("sep=") or {*map(column_key, rows[0])} & {*ITEM, *COUNT}
    ):
        return lines[0].strip("\r\n")
    is_quoted = (line.strip("\r\n") for line in lines if re.fullmatch(r'\s*".*"\s*', line))
    return next(is_quoted, "")


def _csv_rows(name: str, reader: Any) -> Iterator[Row]:
    """Yield the rows that have a cell, each with the place of its first line."""
    is_header, number = True, 1
    try:
        for row in reader:
            if any(map(label_key, row)) if is_header else row:
                is_header = False
                yield f"{name}, line {number}", row
            number = reader.line_num + 1
    except csv.Error as error:
        # An open quote takes the rest of the file, or of a cell's 131,072 characters.
        is_open = re.search("unexpected end|limit", str(error))
        fault = "no quote ends the one that this line begins" if is_open else str(error)
        raise DatasetError(f"{name}, line {number} is not CSV: {fault}") from None


def _chosen(first: Row, rows: Iterator[Row], at: Sequence[int], skip: int = 0) -> Iterator[Row]:
    width = len(first[1])
    for place, row in islice(chain([first], rows), skip, None):
        if len(row) <= max(at):
            raise DatasetError(f"{place}: too few cells in {quoted(' '.join(row))}")
        if any(row[width:]):
            advice = "quote one with a comma"
            if width == 1:
                advice += ", or delete the lines above the names of the columns"
            raise DatasetError(
                f"{place}: more cells than columns in {quoted(','.join(row))}; {advice}"
            )
        yield place, [row[position].strip() for position in at]


def _parquet(path: Path) -> Table:
    if find_spec("pyarrow") is None:
        raise DatasetError(
            f"{path} is a Parquet file, which needs pyarrow: pip install 'ldprecover[parquet]'"
        )
    from pyarrow import ArrowException, parquet

    try:
        file = parquet.ParquetFile(path)
    except ArrowException as error:
        raise DatasetError(f"{path} is not a Parquet file: {error}") from None
    header = tuple(file.schema_arrow.names)

    def rows(at: Sequence[int]) -> Iterator[Row]:
        try:
            table = file.read([header[position] for position in at])
        except ArrowException as error:
            raise DatasetError(f"{path} is not a Parquet file: {error}") from None
        columns = [table.column(header[position]).to_pylist() for position in at]
        for number, cells in enumerate(zip(*columns, strict=True), 1):
            yield f"{path.name}, row {number}", list(cells)

    return Table(path.name, header, rows)
