"""How many connections there may be: each is an open file, and the system allows a process only so
many.
"""

import contextlib
import errno
import resource

LEAST_CONNECTIONS = 16
"""A server with fewer is useless."""

# files of the database and the log, listening sockets, what a commit or an analysis has open for a
# moment
_OTHERS = 60
_OF_A_CHILD = 2  # the pipes to and from it


def max_connections(wanted: int, children: int) -> int:
    """Return how many of the connections wanted there may be, in a server process with so many
    child processes.

    The soft limit on open files is raised as far as that takes and the hard one allows. Raises
    OSError where too few are left.
    """
    others = _OTHERS + _OF_A_CHILD * children
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted + others and soft != resource.RLIM_INFINITY:
        soft = wanted + others if hard == resource.RLIM_INFINITY else min(hard, wanted + others)
        with contextlib.suppress(OSError, ValueError):  # some systems allow fewer than they say
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if soft == resource.RLIM_INFINITY:
        return wanted
    if soft < LEAST_CONNECTIONS + others:
        least = LEAST_CONNECTIONS + others
        raise OSError(
            errno.EMFILE,
            f"the server may have {soft} files open and needs {least} at least; `ulimit -n "
            f"{least}` helps",
        )
    return min(wanted, soft - others)
