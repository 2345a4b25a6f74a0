"""Locally differentially private frequency estimation, its poisoning, and its recovery: the
mathematics.

numpy alone, no I/O.
"""

from ldprecover.counting.tally import Tally
from ldprecover.errors import (
    ContractError,
    CountsAloneWarning,
    LDPRecoverError,
    ParameterError,
    PluginError,
    ReportError,
)
from ldprecover.estimation.estimates import Estimates
from ldprecover.protocols import GRR, OLH, OUE, FrequencyOracle, frequency_oracle
from ldprecover.recovery import Recovery, RecoveryRequest, project_simplex, recover
from ldprecover.rounds.export import RoundExport
from ldprecover.rounds.parameters import RoundParameters

__all__ = [
    "GRR",
    "OLH",
    "OUE",
    "ContractError",
    "CountsAloneWarning",
    "Estimates",
    "FrequencyOracle",
    "LDPRecoverError",
    "ParameterError",
    "PluginError",
    "Recovery",
    "RecoveryRequest",
    "ReportError",
    "RoundExport",
    "RoundParameters",
    "Tally",
    "frequency_oracle",
    "project_simplex",
    "recover",
]
