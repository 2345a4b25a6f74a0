"""Locally differentially private frequency estimation, its poisoning, and its recovery: the
mathematics.

numpy alone, no I/O.
"""

from ldprecover.errors import (
    ContractError,
    LDPRecoverError,
    ParameterError,
    PluginError,
    ReportError,
)
from ldprecover.estimates import Estimates
from ldprecover.export import RoundExport
from ldprecover.parameters import RoundParameters
from ldprecover.protocols import GRR, OLH, OUE, FrequencyOracle, frequency_oracle
from ldprecover.recovery import Recovery, project_simplex, recover
from ldprecover.tally import Tally

__all__ = [
    "GRR",
    "OLH",
    "OUE",
    "ContractError",
    "Estimates",
    "FrequencyOracle",
    "LDPRecoverError",
    "ParameterError",
    "PluginError",
    "Recovery",
    "ReportError",
    "RoundExport",
    "RoundParameters",
    "Tally",
    "frequency_oracle",
    "project_simplex",
    "recover",
]
