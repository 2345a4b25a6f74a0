"""How far a long submission is."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Progress", "progress_bar"]

Progress = Callable[[int, int], None]
"""Called with (reports accepted so far, reports in all), always from the caller's own thread."""


@contextmanager
def progress_bar(description: str) -> Iterator[Progress]:
    """Show a bar on standard error while the block runs; call what it yields to move it on.

    Where standard error is no terminal nothing is shown: a bar in a file is noise.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(description, total=None)

        def move(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield move
