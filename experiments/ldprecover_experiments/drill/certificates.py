"""Certificates of a drill's round before and after the attack, at the attack's share."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ldprecover_client import Client, RefusedError
from ldprecover_experiments.poisoned_round import Targets, Vector

_RANKS = (2, 3, 5, 10, 20)
"""Ranks of the items that the first item is compared with."""


def questions_about(genuine: Vector, targets: Targets | None) -> list[dict[str, Any]]:
    """Return the questions: which item leads, by how much, and how many users hold the targets.

    The leads are those of the estimate before the attack.
    """
    first, *others = np.argsort(-genuine, kind="stable").tolist()
    leads = [{"ahead": [first, others[rank - 2]]} for rank in _RANKS if rank - 2 < len(others)]
    return [{"top": 1}, *leads, *([{"items": list(targets)}] if targets else [])]


def certify(
    server: Client, round: str, share: float, questions: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Return the round's certificate, or the reason of its refusal as `refused`.

    Raises other ClientErrors.
    """
    try:
        certificate = server.certify(round, share, questions=list(questions))
    except RefusedError as error:  # such as a protocol that bounds do not fit
        return {"refused": " ".join(str(error).split())}
    del certificate["items"]  # the score has them
    return certificate
