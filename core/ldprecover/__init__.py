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
`ldprecover_attacker` has the attacks, and `ldprecover_server` is the server. This package needs
numpy alone and does no I/O.
"""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ldprecover.lazy_names import lazy_getattr

# ruff: noqa: F403
if TYPE_CHECKING:  # the list of names is `_MODULES`
    from ldprecover.errors import *
    from ldprecover.estimation.estimates import *
    from ldprecover.estimation.simplex import *
    from ldprecover.protocols import *
    from ldprecover.recovery import *
    from ldprecover.reports.tally import *
    from ldprecover.rounds.export import *
    from ldprecover.rounds.parameters import *

    __version__: str
    simulate: Callable[..., Any]

_MODULES = {
    "errors": "CountsAloneWarning LDPRecoverError ParameterError PluginError ReportError",
    "estimation.estimates": "Estimates",
    "estimation.simplex": "project_simplex",
    "protocols": "GRR HR LLH OLH OUE SS SUE FrequencyOracle frequency_oracle",
    "recovery": "Recovery RecoveryRequest recover",
    "reports.tally": "Tally",
    "rounds.export": "RoundExport",
    "rounds.parameters": "RoundParameters",
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}
__all__ = tuple(_MODULE_OF)
_get_name = lazy_getattr(__name__, _MODULE_OF)

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Return a name that would slow the import of the package."""
        if name == "__version__":
            value = import_module("importlib.metadata").version("ldprecover")
        elif name == "simulate":
            entries = import_module("importlib.metadata").entry_points(group="ldprecover.names")
            value = entries[name].load()
        else:
            return _get_name(name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__", "simulate"})
