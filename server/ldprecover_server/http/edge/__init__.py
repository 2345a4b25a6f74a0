"""HTTP connections: uvicorn's protocol with limits on memory, time and connections.

It imports uvicorn, httptools and Starlette, and nothing of the service. `README.md` lists the
limits.
"""

from ldprecover_server.http.edge.connection_limit import ConnectionLimit
from ldprecover_server.http.edge.parser import RejectedError
from ldprecover_server.http.edge.protocol import ABORT, EDGE, ON_LOSS, Edge, EdgeProtocol

__all__ = ["ABORT", "EDGE", "ON_LOSS", "ConnectionLimit", "Edge", "EdgeProtocol", "RejectedError"]
