"""Norm-Sub: the nearest probability distribution, and nothing about the attack."""

import numpy as np

from ldprecover.recovery.base import Knowledge, Method, Recovery
from ldprecover.recovery.simplex import project_simplex

__all__ = ["METHOD"]

_NOTE = (
    "The nearest probability distribution to the poisoned frequencies: nothing is assumed of the attack, "
    "and eta, targets and malicious_model are not used."
)


def _recover(knowledge: Knowledge) -> Recovery:
    """Return the simplex projection of f~_Z (Wang et al., NDSS 2020): LDPRecover at eta = 0."""
    poisoned = knowledge.poisoned
    return Recovery(
        method=METHOD.name,
        eta=0.0,
        targets=(),
        malicious_sum=knowledge.oracle.malicious_sum,
        poisoned=poisoned,
        malicious=np.zeros_like(poisoned),
        genuine=poisoned.copy(),
        recovered=project_simplex(poisoned),
        notes=(_NOTE,),
    )


METHOD = Method(
    name="norm-sub",
    summary="Projection of the poisoned frequencies on the probability simplex",
    uses=frozenset(),
    recover=_recover,
)
