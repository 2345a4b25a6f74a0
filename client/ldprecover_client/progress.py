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

    Until the first update it shows `first`, or else `description`, and the elapsed time. It shows
    nothing if standard error is not a terminal, because a bar in a file is noise.

        with progress_bar("Reporting") as progress:
            submit_reports(url, opened.id, reports, key=key, progress=progress)
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar
    from rich.text import Text

    class Count(MofNCompleteColumn):
        def render(self, task: Task) -> Text:
            return Text("") if task.total is None else super().render(task)

    class Time(TimeRemainingColumn):
        def render(self, task: Task) -> Text:
            return elapsed.render(task) if task.total is None else super().render(task)

    elapsed = TimeElapsedColumn()
    with Bar(
        TextColumn("{task.description}"), BarColumn(), Count(), Time(), console=Console(stderr=True)
    ) as bar:
        task = bar.add_task(first or description, total=None)

        def update(done: int, total: int) -> None:
            bar.update(task, description=description, completed=done, total=total)

        yield update
