"""Recovery from poisoning: one module a method, one contract, one table."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from ldprecover.errors import ParameterError
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery import ldprecover, norm_sub
from ldprecover.recovery.base import DEFAULT_ETA, MAX_ETA, Knowledge, Method, Recovery
from ldprecover.recovery.malicious import MALICIOUS_MODELS
from ldprecover.recovery.simplex import project_simplex

__all__ = [
    "DEFAULT_ETA",
    "MALICIOUS_MODELS",
    "MAX_ETA",
    "METHODS",
    "Knowledge",
    "Method",
    "Recovery",
    "project_simplex",
    "recover",
]

METHODS: dict[str, Method] = {method.name: method for method in (ldprecover.METHOD, norm_sub.METHOD)}


def recover(
    oracle: FrequencyOracle,
    frequencies: ArrayLike,
    *,
    method: str = "ldprecover",
    eta: float = DEFAULT_ETA,
    targets: Iterable[int] = (),
    malicious_model: str = "paper",
) -> Recovery:
    """Return what `method` recovers from poisoned, unbiased and unclipped frequencies of the d items.

    `eta`, `targets` and `malicious_model` are assumptions about the attack, explained at
    `Knowledge`; a method that does not use one checks it and says so in its notes. Every result is
    a probability distribution. O(d log d). Raises ParameterError.
    """
    if method not in METHODS:
        raise ParameterError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    knowledge = Knowledge(oracle, np.asarray(frequencies), eta, tuple(targets), malicious_model)
    return METHODS[method].recover(knowledge)
