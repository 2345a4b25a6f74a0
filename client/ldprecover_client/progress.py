"""A progress bar for bulk submissions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[int, int], None]
"""Called with (reports accepted, reports in total), always from the caller's thread."""


@contextmanager
def progress_bar(description: str, *, first: str | None = None) -> Iterator[Progress]:
    """Show a bar on standard error while the block runs; yield the function that updates it.

    Until the first update it shows `first`, or else `description`. It shows nothing if standard
    error is not a terminal, because a bar in a file is noise.

        with progress_bar("Reporting") as progress:
            submit_reports(url, opened.id, reports, key=key, progress=progress)
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Bar(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task(first or description, total=None)

        def update(done: int, total: int) -> None:
            bar.update(task, description=description, completed=done, total=total)

        yield update
