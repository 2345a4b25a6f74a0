"""A folder in memory, for tests and benchmarks."""

import os
from pathlib import Path

_MEMORY = Path("/dev/shm")


def memory_folder() -> Path | None:
    """Return a folder in memory, if there is one with 4 GiB free in which programs may run."""
    if not _MEMORY.is_dir():
        return None
    status = os.statvfs(_MEMORY)
    is_usable = status.f_bavail * status.f_frsize > 4 << 30 and not status.f_flag & os.ST_NOEXEC
    return _MEMORY if is_usable else None
