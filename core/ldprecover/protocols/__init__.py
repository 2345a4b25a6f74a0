"""Frequency oracles: one module each, one contract, one table."""

from ldprecover.errors import ParameterError
from ldprecover.protocols.base import (
    DEFAULT_SEARCH,
    MAX_DOMAIN_SIZE,
    MAX_EPSILON,
    MIN_EPSILON,
    Aim,
    FrequencyOracle,
    Search,
)
from ldprecover.protocols.grr import GRR
from ldprecover.protocols.olh import MAX_HASH_RANGE, OLH, default_hash_range
from ldprecover.protocols.oue import OUE

__all__ = [
    "DEFAULT_SEARCH",
    "GRR",
    "MAX_DOMAIN_SIZE",
    "MAX_EPSILON",
    "MAX_HASH_RANGE",
    "MIN_EPSILON",
    "OLH",
    "OUE",
    "PROTOCOLS",
    "Aim",
    "FrequencyOracle",
    "Search",
    "default_hash_range",
    "frequency_oracle",
]

PROTOCOLS: dict[str, type[FrequencyOracle]] = {oracle.protocol: oracle for oracle in (GRR, OUE, OLH)}


def frequency_oracle(protocol: str, epsilon: float, domain_size: int, hash_range: int | None = None) -> FrequencyOracle:
    """Return the oracle named `protocol`; `hash_range` is OLH's alone (default ceil(e^eps + 1)).

    Raises ParameterError for an unknown protocol or a parameter outside its range.
    """
    if protocol not in PROTOCOLS:
        raise ParameterError(f"protocol must be one of {', '.join(PROTOCOLS)}, not {protocol!r}")
    if protocol != OLH.protocol:
        if hash_range is not None:
            raise ParameterError(f"hash_range belongs to olh; {protocol} has none")
        return PROTOCOLS[protocol](epsilon, domain_size)
    if hash_range is None:
        GRR(epsilon, 2)  # epsilon is checked before it is exponentiated
        hash_range = default_hash_range(epsilon)
    return OLH(epsilon, domain_size, hash_range)
