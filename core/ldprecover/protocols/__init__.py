"""Frequency oracles: one module each, one contract, one table."""

from collections.abc import Mapping

from ldprecover.errors import ParameterError
from ldprecover.protocols.base import FrequencyOracle
from ldprecover.protocols.crafting import DEFAULT_SEARCH, Aim, Search
from ldprecover.protocols.grr import GRR
from ldprecover.protocols.hr import HR
from ldprecover.protocols.olh import MAX_HASH_RANGE, OLH, default_hash_range
from ldprecover.protocols.oue import OUE
from ldprecover.protocols.parts import Column, ReportForms, Traits
from ldprecover.protocols.randomiser import MAX_DOMAIN_SIZE, MAX_EPSILON, MIN_EPSILON, check_domain_size, check_epsilon
from ldprecover.protocols.ss import SS, default_subset_size
from ldprecover.protocols.sue import SUE
from ldprecover.protocols.unary import UnaryEncoding

__all__ = [
    "DEFAULT_SEARCH",
    "GRR",
    "HR",
    "MAX_DOMAIN_SIZE",
    "MAX_EPSILON",
    "MAX_HASH_RANGE",
    "MIN_EPSILON",
    "OLH",
    "OUE",
    "PROTOCOLS",
    "SS",
    "SUE",
    "Aim",
    "Column",
    "FrequencyOracle",
    "ReportForms",
    "Search",
    "Traits",
    "UnaryEncoding",
    "default_hash_range",
    "default_subset_size",
    "frequency_oracle",
    "own_parameter",
    "own_parameters",
]

PROTOCOLS: dict[str, type[FrequencyOracle]] = {oracle.protocol: oracle for oracle in (GRR, OUE, OLH, SUE, SS, HR)}


def frequency_oracle(protocol: str, epsilon: float, domain_size: int, parameter: int | None = None) -> FrequencyOracle:
    """Return the oracle named `protocol`.

    `parameter` is the protocol's own integer parameter, for olh the hash range; None takes its default, ceil(e^eps +
    1). Raises ParameterError for an unknown protocol or a parameter outside its range.
    """
    kind = _kind(protocol)
    if kind.parameter is None:
        if parameter is not None:
            raise ParameterError(f"{_owners()}; {protocol} has none")
        return kind(epsilon, domain_size)
    if parameter is None:
        parameter = kind.default_parameter(check_epsilon(epsilon), check_domain_size(domain_size))
    return kind(epsilon, domain_size, parameter)  # type: ignore[call-arg]


def own_parameters() -> dict[str, tuple[type[FrequencyOracle], ...]]:
    """Return the names of the parameters that are some protocols' own, each with these protocols."""
    kinds: dict[str, tuple[type[FrequencyOracle], ...]] = {}
    for kind in PROTOCOLS.values():
        if kind.parameter is not None:
            kinds[kind.parameter] = (*kinds.get(kind.parameter, ()), kind)
    return kinds


def own_parameter(protocol: str, given: Mapping[str, int | None]) -> int | None:
    """Return the protocol's own parameter among those given by name, None where it is not given or None.

    Raises ParameterError for an unknown protocol, and for a parameter that is another's.
    """
    own = _kind(protocol).parameter
    for name, value in given.items():
        if name != own and value is not None:
            raise ParameterError(f"{_owners(name)}; {protocol} has none")
    return None if own is None else given.get(own)


def _kind(protocol: str) -> type[FrequencyOracle]:
    if protocol not in PROTOCOLS:
        raise ParameterError(f"protocol must be one of {', '.join(PROTOCOLS)}, not {protocol!r}")
    return PROTOCOLS[protocol]


def _owners(*names: str) -> str:
    """Return the sentence that says whose parameters these are, or all."""
    kinds = own_parameters()
    for name in names:
        if name not in kinds:
            raise ParameterError(f"no protocol has a parameter {name!r:.60}")
    owned = ((name, ", ".join(kind.protocol for kind in kinds[name])) for name in names or kinds)
    return ", ".join(f"{name} belongs to {owners}" for name, owners in owned)
