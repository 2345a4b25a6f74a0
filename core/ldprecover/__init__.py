"""Locally differentially private frequency estimation, its poisoning, and its recovery.

Users perturb their items, the reports are counted, and `recover` returns the frequencies of the
honest users although some reports are malicious:

    import numpy as np
    from ldprecover import Estimates, Tally, frequency_oracle, recover

    oracle = frequency_oracle("oue", epsilon=1.0, domain_size=4)
    reports = oracle.perturb(np.repeat([0, 1, 2, 3], [500, 300, 150, 50]))
    tally = Tally.of(oracle, reports)
    print(Estimates.of(oracle, tally).frequencies)
    print(recover(oracle, tally, "norm-sub").recovered)

The oracles are GRR, OUE, OLH, SUE, SS, HR and LLH. `simulate` plays whole rounds with labelled
items, attacks and recoveries; the distribution's entry point of that name provides it. Other
packages of this distribution: `ldprecover_client` sends reports to a server and calls it,
`ldprecover_attacker` has the attacks, `ldprecover_cluster` reads report datasets, and
`ldprecover_server` is the server. This package needs numpy alone and does no I/O.
"""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ldprecover.counting.tally import Tally
from ldprecover.errors import (
    CountsAloneWarning,
    LDPRecoverError,
    ParameterError,
    PluginError,
    ReportError,
)
from ldprecover.estimation.estimates import Estimates
from ldprecover.protocols import GRR, HR, LLH, OLH, OUE, SS, SUE, FrequencyOracle, frequency_oracle
from ldprecover.recovery import Recovery, RecoveryRequest, project_simplex, recover
from ldprecover.rounds.export import RoundExport
from ldprecover.rounds.parameters import RoundParameters

__all__ = [
    "GRR",
    "HR",
    "LLH",
    "OLH",
    "OUE",
    "SS",
    "SUE",
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

if TYPE_CHECKING:
    __version__: str
    simulate: Callable[..., Any]
else:

    def __getattr__(name: str) -> Any:
        """Return a name that would slow the import of the package."""
        if name == "__version__":
            value = import_module("importlib.metadata").version("ldprecover")
        elif name == "simulate":
            entries = import_module("importlib.metadata").entry_points(group="ldprecover.names")
            value = entries[name].load()
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), "__version__", "simulate"})
