"""Files with lists and tables: text, CSV and Parquet, read row by row."""

from __future__ import annotations

import csv
import gzip
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import KW_ONLY, dataclass, replace
from importlib.util import find_spec
from io import StringIO, TextIOWrapper
from itertools import chain, islice
from pathlib import Path
from textwrap import shorten
from typing import IO, Any, cast

from ldprecover.items import label_key, quoted
from ldprecover_client.encodings import LINES, alternatives, codec_of, differing, readings
from ldprecover_client.errors import DatasetError

ITEM = ("item", "label")
"""The names of a column of items."""
COUNT = ("count", "users")
"""The names of a column with the number of users of each item."""

_UTF_32 = (b"\xff\xfe\0\0", b"\0\0\xfe\xff")
_PARQUET = (".parquet", ".pq")
_SAMPLE = 1 << 16
_DELIMITERS = ",;\t|"
_TEXTS = (".csv", ".tsv", ".txt")
_SIGNATURES = re.compile(
    rb"""(?P<a_spreadsheet_or_ZIP_file>PK[\x03\x05])|(?P<an_Excel_file>\xd0\xcf\x11\xe0)
    |(?P<a_Parquet_file>PAR1)|(?P<a_gzip_file>\x1f\x8b)
    |(?P<a_form_in_TOML>(.*\n)?\[\[questions\]\])|(?P<JSON>(\xef\xbb\xbf)?\s*[\[{]\s*["{\[])
    |(?P<HTML_or_XML>(\xef\xbb\xbf)?\s*<(!|\?xml|html|table))
    |(?P<a_Stata_file><stata_dta>|[\x68-\x73][\x01\x02]\x01\0)|(?P<an_SPSS_file>\$FL[23])
    |(?P<a_SAS_file>\0{12}\xc2\xea|HEADER[ ]RECORD\*)|(?P<an_R_file>RD[AX]\d\n|[XA]\n\0\0\0[23])
    |(?P<an_SQLite_database>SQLite[ ]format)|(?P<a_dBase_file>\x03.[\x01-\x0c][\x01-\x1f])
    |(?P<a_PDF_or_RTF_document>%PDF|{\\rtf)|(?P<a_picture>\x89PNG|\xff\xd8\xff|GIF8)
    |(?P<binary_data>ARROW1|FEA1|ORC|Obj\x01|\x89HDF|\x93NUMPY|\x80[\x02-\x05])
    |(?P<a_compressed_file>BZh[1-9]|\xfd7zXZ|7z\xbc\xaf|\x28\xb5\x2f\xfd|Rar!)""",
    re.DOTALL | re.VERBOSE,
)
"""First bytes of files that are no text, by what they are."""
_HEADING = re.compile(
    r"""\A\n*(?=(?i:names?|answers?|options?|choices?|categor(?:y|ies)|products?|antwort(?:en)?
    |bezeichnung|produkte?|noms?|r[ée]ponses?|produits?|nombres?|respuestas?|nome|rispost[ae]
    |respostas?|nazwa|odpowied[zź]|n[áa]zev|odpověď|n[ée]v|válasz|nume|răspuns|naam|antwoord(?:en)?
    |namn|navn|svar|nimi|vastaus|имя|название|ответы?|назва|відповідь|όνομα|απάντηση|名称|名稱|名前
    |选项|選項|選択肢|答案|回答|項目|项目|이름|항목|답변|الاسم|שם)\n
    |.+[?\uff1f\u061f]\n(?![^?\uff1f\u061f]*[?\uff1f\u061f])|.+\n{2,}.+(?:\n.+)+\n*\Z)(.+)""",
    re.VERBOSE,
)
"""A first line that names the column, or that a blank line sets apart from lines without one."""
_NUMBER = re.compile(r"\s*[-+]?\d[-\d.,:/ TZ]*%?\s*")


def column_key(name: object) -> str:
    """Return what the names of a column have in common: a spreadsheet may begin it large."""
    return label_key(str(name)).casefold()


Row = tuple[str, Sequence[Any]]
"""The place of a row, for errors, and its cells."""


@dataclass(frozen=True)
class Table:
    """The columns of a file. A list without a header has one column and no name in `header`.

    `rows` returns the cells at these positions, and the place of each row; `values`, if it is
    quicker, those of one position, or a Counter of them. `odd_lines` are findings about lines, for
    `review`, and `codec` is the encoding of the file.
    """

    name: str
    header: tuple[str, ...]
    rows: Callable[[Sequence[int]], Iterator[Row]]
    _: KW_ONLY
    shows_header: bool = True
    values: Callable[[int], Iterable[Any]] | None = None
    odd_lines: Sequence[str] = ()
    codec: str = "utf-8"

    def find(self, names: Sequence[str]) -> int | None:
        """Return the position of the column with one of these names; None without one.

        Raises DatasetError if several have one of them.
        """
        keys = [*map(column_key, names)]
        positions = [i for i, name in enumerate(self.header) if column_key(name) in keys]
        if len(positions) > 1:
            raise DatasetError(
                f"{self.name} has both columns, {self.header[positions[0]]!r} and "
                f"{self.header[positions[1]]!r}: rename one, or name the one to take with --column"
            )
        return positions[0] if positions else None

    def need(self, names: Sequence[str], hint: str = "") -> int:
        """Return the position of the column with one of these names. Raises DatasetError."""
        position = self.find(names)
        if position is None:
            present = shorten(", ".join(filter(None, self.header)), 400, placeholder=" …")
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

    A .txt file has one value a line. A .csv or .tsv file has cells between commas, semicolons, tabs
    or bars, whichever fits `column`, the names of ITEM and COUNT, and the first lines. Files may
    end in .gz. Errors while it is read, also in the body of the context, become DatasetError;
    `absent` ends the one for a missing file.
    """
    codec = codec_of(encoding)
    try:
        if path.suffix.lower() in _PARQUET:
            yield _parquet(path)
            return
        with _bytes(path) as file:
            sample = cast("Any", file).peek(_SAMPLE)[:_SAMPLE]
            codec = _checked_codec(path.name, sample, codec)
            with TextIOWrapper(file, codec, newline="") as text:
                yield replace(
                    _text_table(path, text, sample.decode(codec, "ignore"), column), codec=codec
                )
    except FileNotFoundError:
        raise DatasetError(f"there is no file {path}{absent}") from None
    except UnicodeError:
        raise DatasetError(_undecodable(path, codec)) from None
    except EOFError as error:
        raise DatasetError(f"{path} is not a CSV file: {error}") from None
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        reason = "it is a folder" if path.is_dir() else reason
        raise DatasetError(f"cannot read {path}: {reason}") from None


def _suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    return Path(path.stem).suffix.lower() if suffix == ".gz" else suffix


def _bytes(path: Path) -> IO[bytes]:
    is_gzip = path.suffix.lower() == ".gz"
    return cast("IO[bytes]", gzip.open(path) if is_gzip else path.open("rb", _SAMPLE))


def _checked_codec(name: str, sample: bytes, codec: str) -> str:
    """Return the codec; UTF-16 without a byte order mark has most zeros in one half.

    Raises DatasetError if the first bytes are those of another kind of file or encoding.
    """
    signature = _SIGNATURES.match(sample)
    if signature and signature.lastgroup:
        kind = signature.lastgroup.replace("_", " ")
        raise DatasetError(
            f"{name} is {kind}: save the list as CSV UTF-8, or name it as what it is"
        )
    if sample.startswith(_UTF_32) or 5 * sample.count(0) > 3 * len(sample):
        raise DatasetError(f"{name} is binary data or text in UTF-32: save the list as CSV UTF-8")
    has_mark = sample[:2] in (b"\xff\xfe", b"\xfe\xff")
    is_wide = (
        has_mark
        or 5 * sample.count(0) > len(sample)
        or 2 * len(re.findall(rb"\0[\r\n]|[\r\n]\0", sample)) > len(re.findall(rb"[\r\n]", sample))
    )
    if is_wide and codec != "utf-16":
        other = "" if has_mark else " or binary data"
        raise DatasetError(
            f"{name} is not text in {codec.upper()} but in UTF-16{other}: add --encoding utf-16"
        )
    is_utf_8 = sample.startswith(b"\xef\xbb\xbf") and not codec.startswith("utf-8")
    if is_utf_8 or (codec == "utf-16" and not is_wide):
        raise DatasetError(f"{name} is not text in {codec.upper()}: leave out --encoding")
    high, low = sample[::2].count(0), sample[1::2].count(0)
    if codec == "utf-16" and not has_mark and high != low:
        return "utf-16-be" if high > low else "utf-16-le"
    return "utf-8-sig" if codec == "utf-8" else codec


def _undecodable(path: Path, codec: str) -> str:
    """Return the message with the first line that cannot be decoded, as likely encodings read it.

    The text of a file that is neither text nor CSV may be a secret.
    """
    lines: dict[int, bytes] = {}
    valid = 0  # lines beyond ASCII
    with suppress(OSError, EOFError), _bytes(path) as file:
        for number, line in enumerate(file.read().splitlines(), 1):
            try:
                valid += not line.decode(codec).isascii()
            except UnicodeDecodeError:
                lines[number] = line
    fault = f"is not text in {codec.removesuffix('-sig').upper()}"
    if not lines:
        return f"{path.name} {fault}; save it as UTF-8"
    fault = f"{path.name}, line {min(lines)} {fault}"
    if codec == "utf-8-sig" and valid > len(lines):
        return f"{fault}, as other lines are: mend it, and save the file as UTF-8"
    at, shown = differing(readings(b"\n".join([*lines.values()][:LINES])))
    form = "{1} ({0})" if _suffix(path) in _TEXTS else "{1}"
    return (
        f"{fault}; name the encoding in which line {[*lines][at]} reads right: "
        f"--encoding {alternatives(shown, form)}"
    )


def _cells(line: str, delimiter: str) -> list[str]:
    return next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])


def _delimiter(lines: Sequence[str], names: set[str]) -> str:
    """Return the delimiter that fits the given columns, then the lines, then has most columns."""

    def fit(delimiter: str) -> tuple[int, bool, int]:
        rows = [_cells(line, delimiter) for line in lines]
        sizes = {len(row) for row in rows if row}
        is_even = sizes != {1} and len(sizes) == 1
        return max(_found(row, names) for row in rows), is_even, len(rows[0])

    return max(_DELIMITERS, key=fit) if lines else ","


def _found(row: Sequence[str], names: set[str]) -> int:
    return len(names & {*map(column_key, row)})


def _text_table(path: Path, text: Iterable[str], sample: str, column: str | None) -> Table:
    name, suffix = path.name, _suffix(path)
    names = {column_key(column)} if column else {*ITEM, *COUNT}
    lines = [line for line in StringIO(sample, "") if line.strip()]
    if len(lines) > 1 and len(sample) > 1000:
        lines.pop()  # it may be cut
    lines = lines[:100]
    marked = lines and re.match(f"sep=([{_DELIMITERS}])", lines[0])
    delimiter = marked[1] if marked else "\t" if suffix == ".tsv" else _delimiter(lines, names)
    if suffix in ("", ".txt") and column is None:
        fault = _table_like(lines, delimiter)
        if not fault:
            stripped = "\n".join(map(str.strip, StringIO(sample, "")))
            places = ((f"{name}, line {number}", line) for number, line in enumerate(text, 1))
            return Table(
                name,
                (),
                lambda _: ((place, [line.strip()]) for place, line in places),
                odd_lines=[
                    f"{name}, line {heading.start(1) + 1}: {quoted(heading[1])} may be a heading"
                    for heading in _HEADING.finditer(stripped)
                ],
            )
        if suffix:
            raise DatasetError(
                f"{name}, line 1: {quoted(fault)} is of a CSV file, not of a list with one item a "
                "line: name the file .csv, or the column with --column"
            )
    reader = csv.reader(text, delimiter=delimiter, strict=True, skipinitialspace=True)
    rows = _csv_rows(name, reader)
    place, first = next(rows, ("", []))
    if first and first[0].startswith("sep="):  # for Excel
        place, first = next(rows, ("", []))
    if not first:
        raise DatasetError(f"{name} is empty")
    following = [_cells(line, delimiter) for line in lines[1 + bool(marked) :]]
    title = " ".join(filter(None, map(str.strip, first)))
    # A title has one cell; a header that lacks a wanted name has all.
    size = sum(map(bool, map(str.strip, first)))
    below = [row for row in following if _found(row, names)]
    if not _found(first, names) and any(size < max(2, sum(map(bool, row))) for row in below):
        raise DatasetError(f"{place}: {quoted(title)} is above the names of the columns: delete it")
    odd = []
    if any(_is_other_kind(*column) for column in zip(*following, strict=False)):
        odd = [f"{name}: {quoted(delimiter.join(following[0]))} may be a second header"]
    if len(first) == 1 and column_key(title) not in ITEM and column is None:
        if not any(title in map(str.strip, row) for row in following):
            odd.append(
                f"{name}: {quoted(title)} in the first line may be an item or the name of the "
                f"column; name the column with --column {quoted(title)}, or write a line above it: "
                "item"
            )
        return Table(name, (), lambda _: _chosen((place, first), rows, [0]), odd_lines=odd)
    return Table(
        name,
        tuple(cell.strip() for cell in first),
        lambda at: _chosen((place, first), rows, at, skip=1),
        shows_header=suffix in (".csv", ".tsv"),
        odd_lines=odd,
    )


def _is_other_kind(first: str, *others: str) -> bool:
    """Return whether the first cell is a word, and the others of its column are numbers."""
    is_word = not _NUMBER.fullmatch(first) and re.search(r"[^\W\d_]|\{", first)
    return len(others) > 1 and bool(is_word) and all(map(_NUMBER.fullmatch, others))


def _table_like(lines: Sequence[str], delimiter: str) -> str:
    """Return the first of these lines that is one of a CSV file rather than of a list, or ""."""
    rows = [_cells(line, delimiter) for line in lines]
    is_even = len(rows) > 1 and {1} != {*map(len, rows)} == {len(rows[0])}
    has_words = any(row[0][-1:].isalnum() for row in rows)  # and not bullets or 1.
    is_table = is_even and has_words and delimiter != ","
    if rows and (is_table or lines[0].startswith("sep=") or _found(rows[0], {*ITEM, *COUNT})):
        return lines[0].strip("\r\n")
    return ""


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
        fault = "no quote ends the one that this line begins"
        if "limit" in str(error):  # of a cell's 131,072 characters
            fault = f"a cell is too long, or {fault}"
        elif "unexpected end" not in str(error):
            fault = str(error)
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
