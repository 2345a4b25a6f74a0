"""`result`: what a round found, as reported, corrected and proven."""

from ldprecover_cli.grammar import group
from ldprecover_cli.result import alarms, certify, compare, frequencies, methods, recover

app = group(
    "result",
    """See what a round found: its frequencies, an attack, the repair.

    The repair is called recovery. These commands change nothing.

    Example: ldprecover result recover cities
    """,
    frequencies=frequencies.frequencies,
    recover=recover.recover,
    compare=compare.compare,
    alarms=alarms.alarms,
    certify=certify.certify,
    methods=methods.methods,
)
