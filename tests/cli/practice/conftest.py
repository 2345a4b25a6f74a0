"""The round of a class, and the address at which its server takes students."""

import re

from ldprecover_cli.practice.server import PracticeServer
from ldprecover_interface.rounds import NewRound

NETWORK = "127.0.0.2"  # not the address of the teacher's page, so the server takes it for a network
ROUND = NewRound(
    name="class",
    practice=True,
    question="Which <b>?",
    items=["tea", "<b>"],
    protocol="grr",
    epsilon=4.0,
)


def token_of(server: PracticeServer) -> str:
    """Return the token of the link of a server."""
    return re.split("[?=&]", server.link)[2]
