"""Frequency oracles: one module for each protocol, one contract, one table."""

from __future__ import annotations

from collections.abc import Mapping

from ldprecover._checks import did_you_mean, plugin_hint
from ldprecover.errors import ParameterError
from ldprecover.protocols.description import Column, OwnParameter, ReportForms, Traits
from ldprecover.protocols.grr import GRR
from ldprecover.protocols.hr import HR
from ldprecover.protocols.llh import LLH
from ldprecover.protocols.olh import MAX_HASH_RANGE, OLH, default_hash_range
from ldprecover.protocols.oracle import (
    MAX_DOMAIN_SIZE,
    MAX_EPSILON,
    MAX_USERS,
    MIN_EPSILON,
    FrequencyOracle,
    check_domain_size,
    check_epsilon,
)
from ldprecover.protocols.oue import OUE
from ldprecover.protocols.ss import SS, default_subset_size
from ldprecover.protocols.sue import SUE
from ldprecover.protocols.unary import UnaryEncoding
from ldprecover.protocols.wire import IntegerForm, WireForm, raise_first

__all__ = [
    "GRR",
    "HR",
    "LLH",
    "MAX_DOMAIN_SIZE",
    "MAX_EPSILON",
    "MAX_HASH_RANGE",
    "MAX_USERS",
    "MIN_EPSILON",
    "OLH",
    "OUE",
    "PROTOCOLS",
    "SS",
    "SUE",
    "Column",
    "FrequencyOracle",
    "IntegerForm",
    "OwnParameter",
    "ReportForms",
    "Traits",
    "UnaryEncoding",
    "WireForm",
    "default_hash_range",
    "default_subset_size",
    "frequency_oracle",
    "own_parameter",
    "own_parameters",
    "raise_first",
]

PROTOCOLS: dict[str, type[FrequencyOracle]] = {
    oracle.protocol: oracle for oracle in (GRR, OUE, OLH, SUE, SS, HR, LLH)
}


def frequency_oracle(
    protocol: str, epsilon: float, domain_size: int, parameter: int | None = None
) -> FrequencyOracle:
    """Return the oracle of the protocol named `protocol`.

    `parameter` is the protocol's own integer parameter, such as the hash range of olh; None takes
    its default.

        oracle = frequency_oracle("olh", epsilon=1.0, domain_size=100)
        reports = oracle.perturb([3, 17, 3])

    Raises ParameterError for an unknown protocol, and for a parameter outside its range.
    """
    kind = _kind(protocol)
    if kind.parameter is None:
        if parameter is not None:
            raise ParameterError(f"{_owners()}; {protocol} has none")
        return kind(epsilon, domain_size)
    if parameter is None:
        parameter = kind.parameter.default(check_epsilon(epsilon), check_domain_size(domain_size))
    return kind(epsilon, domain_size, parameter)  # type: ignore[call-arg]


def own_parameters() -> dict[str, tuple[OwnParameter, ...]]:
    """Return the own parameters of all protocols by name, one entry for each owner."""
    parameters: dict[str, tuple[OwnParameter, ...]] = {}
    for protocol in PROTOCOLS:
        if (own := PROTOCOLS[protocol].parameter) is not None:
            parameters[own.name] = (*parameters.get(own.name, ()), own)
    return parameters


def own_parameter(protocol: str, values: Mapping[str, int | None]) -> int | None:
    """Return the protocol's own parameter from values by name.

    A value that is missing or None gives None. Raises ParameterError for an unknown protocol, and
    for a parameter of another protocol.
    """
    own = _kind(protocol).parameter
    for name, value in values.items():
        if value is not None and (own is None or name != own.name):
            raise ParameterError(f"{_owners(name)}; {protocol} has none")
    return None if own is None else values.get(own.name)


def _kind(protocol: str) -> type[FrequencyOracle]:
    if protocol not in PROTOCOLS:
        hint = plugin_hint("ldprecover.protocols", str(protocol))
        raise ParameterError(
            f"protocol must be one of {', '.join(PROTOCOLS)}, not {protocol!r}"
            f"{hint or did_you_mean(protocol, PROTOCOLS)}"
        )
    return PROTOCOLS[protocol]


def _owners(*names: str) -> str:
    """Return the sentence that names the protocols to which parameters belong; by default all."""
    owners: dict[str, list[str]] = {}
    for protocol in PROTOCOLS:
        if (own := PROTOCOLS[protocol].parameter) is not None:
            owners.setdefault(own.name, []).append(protocol)
    for name in names:
        if name not in owners:
            raise ParameterError(f"no protocol has a parameter {name!r:.60}")
    return ", ".join(f"{name} belongs to {', '.join(owners[name])}" for name in names or owners)
