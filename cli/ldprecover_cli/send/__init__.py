"""`send`: what one real user does."""

from ldprecover_cli.grammar import group
from ldprecover_cli.send import ledger, resume, value

app = group(
    "send",
    """Answer a round yourself; your answer is made private first.

    It is perturbed on this machine, and only the perturbed report leaves it.

    Example: ldprecover send value "Denver, CO" cities
    """,
    value=value.value,
    resume=resume.resume,
    ledger=ledger.ledger,
)
