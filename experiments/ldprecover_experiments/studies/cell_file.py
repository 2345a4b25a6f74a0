"""The file cells.jsonl: a line for each cell, appended so that runs can be resumed."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, ValidationError

from ldprecover import ParameterError
from ldprecover_experiments.errors import ExperimentError
from ldprecover_experiments.studies.cells import Cell
from ldprecover_experiments.studies.measures import Outcome
from ldprecover_experiments.studies.runs import Work


class _Line(BaseModel):
    """A cell, what else its outcomes depend on, and its outcomes."""

    cell: Cell
    digest: str
    n: int
    seed: int
    methods: str
    outcomes: list[Outcome] = []

    @classmethod
    def of(cls, work: Work, cell: Cell, outcomes: Iterable[Outcome] = ()) -> "_Line":
        users = work.users_by_data[cell.data]
        return cls(
            cell=cell,
            digest=users.digest,
            n=users.n,
            seed=work.seed,
            methods=work.variant,
            outcomes=list(outcomes),
        )

    @property
    def key(self) -> str:
        return self.model_dump_json(exclude={"outcomes"}, exclude_none=True)


class CellFile:
    """A file of cells. A torn last line, left by an interrupted write, is dropped.

    Cells of other work stay in the file. Raises ParameterError for a file of another format.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._lines: dict[str, _Line] = {}
        whole = file.read_bytes() if file.exists() else b""
        complete = whole[: whole.rfind(b"\n") + 1]
        try:
            lines = map(_Line.model_validate_json, complete.splitlines())
            self._lines = {line.key: line for line in lines}
        except ValidationError as error:
            raise ParameterError(
                f"{file} is not a file of cells of this version: name another folder with --output"
            ) from error
        if not file.exists() or len(complete) < len(whole):
            replaced(file, complete)

    def of(self, work: Work, cell: Cell) -> list[Outcome] | None:
        """Return the outcomes of a cell, None if it has not been run."""
        line = self._lines.get(_Line.of(work, cell).key)
        return None if line is None else line.outcomes

    def add(self, work: Work, cells: Iterable[tuple[Cell, list[Outcome]]]) -> None:
        """Append finished cells in one write, which is on the disk when this returns."""
        lines = [_Line.of(work, *each) for each in cells]
        self._lines |= {line.key: line for line in lines}
        with self.file.open("ab") as file:
            file.write(
                "".join(f"{each.model_dump_json(exclude_none=True)}\n" for each in lines).encode()
            )
            file.flush()
            os.fsync(file.fileno())


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
