"""The file cells.csv: a row for each cell and method, appended so that runs can be resumed."""

import csv
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from ldprecover import ParameterError
from ldprecover_experiments.errors import ExperimentError
from ldprecover_experiments.measures import Outcome
from ldprecover_experiments.parameters import Cell, GenuineUsers

_MEASURED = ("mse", "fg", "malicious_mse", "coverage", "variance", "attack_probability")
COLUMNS = (
    *("data", "digest", "n", "protocol", "attack", "model", "beta", "epsilon", "eta", "xi"),
    *("trial", "seed", "door", "method", *_MEASURED, "seconds"),  # phrases: quoted
    *("refused", "methods"),
)
"""Columns of the file. `methods` is the number of rows of the cell."""

_WITHOUT_REASONS = tuple(name for name in COLUMNS if name != "refused")
"""Columns of files from before the reasons of refusals were stored."""

_KEY = COLUMNS.index("method")
_WHOLE = ("n", "trial", "seed")
_NUMBERS = ("beta", "epsilon", "eta", "xi", *_MEASURED, "seconds")


@dataclass(frozen=True)
class CellContext:
    """The context of cells: the users, the seed, and the variant of the measurement.

    The variant is "in-process" or "http" for the paper's methods, else the key of the methods.
    """

    users_by_data: Mapping[str, GenuineUsers]
    seed: int
    variant: str = "in-process"

    def key(self, cell: Cell) -> tuple[str, ...]:
        """Return the columns that identify a cell in the file."""
        users = self.users_by_data[cell.data]
        data, *columns = cell.columns.values()
        return tuple(map(str, (data, users.digest, users.n, *columns, self.seed, self.variant)))


class CellFile:
    """A file of cells. An incomplete cell, left by an interrupted write, is dropped.

    Cells of other contexts stay in the file. Raises ParameterError for a file of another format.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._found: dict[tuple[str, ...], list[Outcome]] = {}
        if file.exists():
            self._read()
        else:
            replaced(file, csv_line(COLUMNS))

    def of(self, run: CellContext, cell: Cell) -> list[Outcome] | None:
        """Return the outcomes of a cell, None if it has not been run."""
        return self._found.get(run.key(cell))

    def add(self, run: CellContext, cells: Iterable[tuple[Cell, list[Outcome]]]) -> None:
        """Append finished cells in one write, which is on the disk when this returns."""
        text = StringIO()
        for cell, outcomes in cells:
            key = run.key(cell)
            self._found[key] = outcomes
            for o in outcomes:
                numbers = (getattr(o, name) for name in _MEASURED)
                text.write(
                    csv_line(
                        (*key, o.method, *numbers, f"{o.seconds:.3g}", o.refused, len(outcomes))
                    )
                )
        with self.file.open("ab") as file:
            file.write(text.getvalue().encode())
            file.flush()
            os.fsync(file.fileno())

    def parquet(self) -> bytes:
        """Return every row as Parquet: text, 64-bit integers and doubles, null for no value."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv
        from pyarrow import parquet

        types = {
            name: pa.int64()
            if name in _WHOLE
            else pa.float64()
            if name in _NUMBERS
            else pa.string()
            for name in COLUMNS[:-1]
        }
        table = arrow_csv.read_csv(
            self.file,
            parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types=types,
                include_columns=list(types),
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
        sink = pa.BufferOutputStream()
        parquet.write_table(table, sink)
        return bytes(sink.getvalue())

    def _read(self) -> None:
        whole = self.file.read_bytes()
        text = whole[: whole.rfind(b"\n") + 1].decode(
            "utf-8", errors="replace"
        )  # a torn last line does not count
        rows = list(csv.reader(StringIO(text, newline="")))
        broken = bool(rows) and tuple(rows[0]) == _WITHOUT_REASONS
        if broken:
            rows = [list(COLUMNS), *([*row[:-1], "", *row[-1:]] for row in rows[1:])]
        if not rows or tuple(rows[0]) != COLUMNS:
            raise ParameterError(
                f"{self.file} is not a file of cells of this version: name another folder with "
                "--out"
            )
        rows_by_cell: dict[tuple[str, ...], list[list[str]]] = defaultdict(list)
        for row in rows[1:]:
            rows_by_cell[tuple(row[:_KEY])].append(row)
        for key, cell_rows in rows_by_cell.items():
            try:
                outcomes = [_outcome(row) for row in cell_rows]
                whole_cell = len(outcomes) == int(cell_rows[0][-1])
            except ValueError:  # too few columns, or no number where one should be
                whole_cell = False
            if whole_cell:
                self._found[key] = outcomes
            broken = broken or not whole_cell
        if broken or len(text.encode()) != len(whole):
            lines = [
                csv_line(row)
                for key, cell_rows in rows_by_cell.items()
                if key in self._found
                for row in cell_rows
            ]
            replaced(self.file, "".join([csv_line(COLUMNS), *lines]))


def replaced(file: Path, content: str | bytes) -> None:
    """Write a file atomically. Raises ExperimentError."""
    beside = file.with_name(f".{file.name}.new")
    data = content.encode() if isinstance(content, str) else content
    try:
        with beside.open("wb") as new:
            new.write(data)
            new.flush()
            os.fsync(new.fileno())
        beside.replace(file)
    except OSError as error:
        with suppress(OSError):
            beside.unlink()
        raise ExperimentError(f"cannot write {file}: {error.strerror}") from error


def csv_line(values: Sequence[object]) -> str:
    """Return values as a line of CSV, nothing for None."""
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerow(
        ["" if value is None else value for value in values]
    )
    return text.getvalue()


def _outcome(row: Sequence[str]) -> Outcome:
    method, mse, fg, malicious_mse, *certainty, seconds, refused, _ = row[_KEY:]
    coverage, variance, probability = map(_number, certainty)
    return Outcome(
        method,
        float(mse),
        _number(fg),
        _number(malicious_mse),
        float(seconds),
        coverage,
        variance,
        probability,
        refused or None,
    )


def _number(text: str) -> float | None:
    return float(text) if text else None
