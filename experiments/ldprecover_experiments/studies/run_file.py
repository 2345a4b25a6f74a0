"""The file cells.csv: a row for each cell and method, appended so that runs can be resumed."""

import csv
import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from io import StringIO
from pathlib import Path

from ldprecover import ParameterError
from ldprecover_experiments.errors import ExperimentError
from ldprecover_experiments.studies.measures import Outcome
from ldprecover_experiments.studies.parameters import Cell
from ldprecover_experiments.studies.runs import Work

_MEASURED = ("mse", "fg", "malicious_mse", "coverage", "variance", "attack_probability")
COLUMNS = (
    *("data", "digest", "n", "protocol", "attack", "model", "beta", "epsilon", "eta", "xi"),
    *("trial", "seed", "door", "method", *_MEASURED, "seconds"),  # phrases: quoted
    *("refused", "methods"),
)
"""Columns of the file. `methods` is the number of rows of the cell."""

_KEY = COLUMNS.index("method")
_WHOLE = ("n", "trial", "seed")
_NUMBERS = ("beta", "epsilon", "eta", "xi", *_MEASURED, "seconds")


class CellFile:
    """A file of cells. An incomplete cell, left by an interrupted write, is dropped.

    Cells of other work stay in the file. Raises ParameterError for a file of another format.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._outcomes: dict[tuple[str, ...], list[Outcome]] = {}
        if file.exists():
            self._read()
        else:
            replaced(file, csv_line(COLUMNS))

    def of(self, work: Work, cell: Cell) -> list[Outcome] | None:
        """Return the outcomes of a cell, None if it has not been run."""
        return self._outcomes.get(work.key(cell))

    def add(self, work: Work, cells: Iterable[tuple[Cell, list[Outcome]]]) -> None:
        """Append finished cells in one write, which is on the disk when this returns."""
        text = StringIO()
        for cell, outcomes in cells:
            key = work.key(cell)
            self._outcomes[key] = outcomes
            for o in outcomes:
                numbers = (getattr(o, name) for name in _MEASURED)
                rest = (f"{o.seconds:.3g}", o.refused, len(outcomes))
                text.write(csv_line((*key, o.method, *numbers, *rest)))
        with self.file.open("ab") as file:
            file.write(text.getvalue().encode())
            file.flush()
            os.fsync(file.fileno())

    def parquet(self) -> bytes:
        """Return every row as Parquet: text, 64-bit integers and doubles, null for no value."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv
        from pyarrow import parquet

        types = dict.fromkeys(COLUMNS[:-1], pa.string())
        types |= dict.fromkeys(_WHOLE, pa.int64()) | dict.fromkeys(_NUMBERS, pa.float64())
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
        header, *rows = list(csv.reader(StringIO(text, newline=""))) or [[]]
        if tuple(header) != COLUMNS:
            raise ParameterError(
                f"{self.file} is not a file of cells of this version: name another folder with "
                "--output"
            )
        rows_by_cell: dict[tuple[str, ...], list[list[str]]] = defaultdict(list)
        for row in rows:
            rows_by_cell[tuple(row[:_KEY])].append(row)
        for key, cell_rows in rows_by_cell.items():
            with suppress(ValueError):  # too few columns, or no number where one should be
                outcomes = [_outcome(row) for row in cell_rows]
                if len(outcomes) == int(cell_rows[0][-1]):
                    self._outcomes[key] = outcomes
        lines = [header, *(row for key in self._outcomes for row in rows_by_cell[key])]
        if len(lines) <= len(rows) or len(text.encode()) != len(whole):
            replaced(self.file, "".join(map(csv_line, lines)))


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
    fields = dict(zip(COLUMNS, row, strict=True))
    numbers = {name: float(fields[name]) if fields[name] else None for name in _NUMBERS[4:]}
    refused = fields["refused"] or None
    return Outcome(fields["method"], **numbers, refused=refused)  # type: ignore[arg-type]
