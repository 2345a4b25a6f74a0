"""The folder through which the processes of a server share their metrics."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable from which prometheus_client takes the folder."""
_PREFIX = "ldprecover-metrics-"


def shared_folder() -> Path | None:
    """Return the folder of this server, or None if it is a single process."""
    return Path(os.environ[VARIABLE]) if VARIABLE in os.environ else None


@contextmanager
def shared_by_processes() -> Iterator[None]:
    """Share metrics between the processes that start inside the `with` block.

    Deletes the folders of servers that were killed.
    """
    for folder in Path(gettempdir()).glob(f"{_PREFIX}*"):
        with _lock(folder) as is_locked:
            if is_locked:
                shutil.rmtree(folder, ignore_errors=True)
    with _new_folder() as name:
        os.environ[VARIABLE] = name
        try:
            yield
        finally:
            del os.environ[VARIABLE]


def drop_gauges_of_ended_processes(folder: Path) -> None:
    """Delete the gauges of processes that have ended; their counters stay."""
    for path in folder.glob("gauge_live*.db"):
        try:
            os.kill(int(path.stem.rpartition("_")[2]), 0)
        except ProcessLookupError:
            path.unlink(missing_ok=True)


@contextmanager
def _new_folder() -> Iterator[str]:
    while True:
        with (
            TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as name,
            _lock(Path(name)) as is_locked,
        ):
            # Before the lock, another starting server may have deleted it as that of a dead one.
            if is_locked and Path(name).exists():
                yield name
                return


@contextmanager
def _lock(folder: Path) -> Iterator[bool]:
    """Lock a folder; yield whether it belongs to this user and no live process had locked it.

    The kernel releases the lock at the end of its process.
    """
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        yield False
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_locked = os.fstat(handle).st_uid == os.geteuid()
    except OSError:
        is_locked = False
    try:
        yield is_locked
    finally:
        os.close(handle)
