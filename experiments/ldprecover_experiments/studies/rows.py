"""The rows of a study: each cell with its outcomes, in memory, in cells.jsonl and in JSON."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from ldprecover import ParameterError
from ldprecover_experiments.studies.cells import Cell
from ldprecover_experiments.studies.measures import MethodOutcome


@dataclass(frozen=True, kw_only=True)
class CellRow:
    """A cell, all else that its outcomes depend on, and its outcomes, one for each method.

    `digest` is that of the genuine users and `n` their number; `methods` identifies the methods.
    `environment` has the versions and the platform that ran it. Rows are equal if their outcomes
    must be.
    """

    cell: Cell
    digest: str
    n: int
    seed: int
    methods: str
    outcomes: Sequence[MethodOutcome] = field(default=(), compare=False)
    environment: str = field(default="", compare=False)


_JSON = TypeAdapter(CellRow)


class RowFile:
    """Rows in a file, a line of JSON each, appended so that runs can be resumed.

    A torn last line, left by an interrupted write, is dropped. Rows of other studies stay in the
    file. Without a file the rows are in memory alone. Raises ParameterError for a file of another
    format.
    """

    def __init__(self, file: Path | None = None) -> None:
        self.file = file
        self.rows: dict[CellRow, CellRow] = {}
        """Each row that was run, by itself: one without outcomes finds it."""
        if file is None:
            return
        whole = file.read_bytes() if file.exists() else b""
        complete = whole[: whole.rfind(b"\n") + 1]
        try:
            rows = [_JSON.validate_json(line) for line in complete.splitlines()]
        except ValidationError as error:
            raise ParameterError(
                f"{file} is not a file of cells of this version: name another folder with --output"
            ) from error
        self.rows = {row: row for row in rows}
        with file.open("ab") as opened:
            opened.truncate(len(complete))

    def add(self, rows: Iterable[CellRow]) -> None:
        """Append rows in one write, which is on the disk when this returns. Raises OSError."""
        self.rows |= {row: row for row in rows}
        if self.file is None:
            return
        lines = b"".join(_JSON.dump_json(row, exclude_none=True) + b"\n" for row in rows)
        try:
            with self.file.open("ab") as file:
                file.write(lines)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:  # that of a full disk names no file
            error.filename = str(self.file)
            raise
