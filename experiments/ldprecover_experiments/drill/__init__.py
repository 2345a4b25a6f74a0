"""A drill: a poisoned round that a page starts, watches and scores against the truth.

It is a process in front of a server, whose page it extends by a form. The server knows nothing of
it.
"""

from ldprecover_experiments.drill.server import DrillServer, drill_server

__all__ = ["DrillServer", "drill_server"]
