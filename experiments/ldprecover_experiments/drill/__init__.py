"""A drill: genuine users and an attack on a round of its own, told from a page, and scored against
the truth.

It is a process beside a server, whose page it serves with a form of its own. The server contains
nothing of it.
"""

from ldprecover_experiments.drill.server import DrillServer, drill_server

__all__ = ["DrillServer", "drill_server"]
