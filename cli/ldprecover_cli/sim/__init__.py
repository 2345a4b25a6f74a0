"""`sim`: what a lab does, with simulated users and attackers."""

from ldprecover_cli.grammar import group
from ldprecover_cli.sim import attack, users

app = group(
    "sim",
    """Simulate users of a round, or attackers that distort it.

    Use it with rounds of your own: nothing can take simulated reports out again.

    Example: ldprecover sim users cities --dataset cities --users 20000
    """,
    users=users.users,
    attack=attack.attack,
)
