"""The limit on connections that follows from the limit on open files."""

import contextlib
import errno
import resource

LEAST_CONNECTIONS = 16
"""The fewest connections with which a server starts."""

_OTHER_FILES = 108
"""Open files beside connections: database, log, 64 listening sockets, commits and analyses."""
_WORKER_FILES = 2
"""Open files of a worker process: its two pipes."""


def max_connections(connections: int, workers: int) -> int:
    """Return how many of `connections` a process with that many analysis workers may open.

    Raises the soft limit on open files as far as necessary and allowed. Raises OSError if fewer
    than LEAST_CONNECTIONS remain.
    """
    other_files = _OTHER_FILES + _WORKER_FILES * workers
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + other_files
    if soft < needed and soft != resource.RLIM_INFINITY:
        soft = needed if hard == resource.RLIM_INFINITY else min(hard, needed)
        # macOS rejects a soft limit above OPEN_MAX although its hard limit is infinite.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if soft == resource.RLIM_INFINITY:
        return connections
    least = LEAST_CONNECTIONS + other_files
    if soft < least:
        raise OSError(
            errno.EMFILE,
            f"the limit on open files is {soft}, and the server needs at least {least}; raise it "
            f"with `ulimit -n {least}`",
        )
    return min(connections, soft - other_files)
