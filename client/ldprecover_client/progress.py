"""How far a long submission is."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[int, int], None]
"""Called with (reports accepted so far, reports in all), always from the caller's own thread."""


@contextmanager
def progress_bar(description: str, *, first: str | None = None) -> Iterator[Progress]:
    """Show a bar on standard error while the block runs; call what it yields to move it on.

    Until it first moves, it says what comes `first`, if that is given, and how long that has taken.
    Where standard error is not a terminal, nothing is shown: a bar in a file is noise.
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

        def move(done: int, total: int) -> None:
            bar.update(task, description=description, completed=done, total=total)

        yield move
