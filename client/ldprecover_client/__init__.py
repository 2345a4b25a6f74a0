"""Client of an LDPRecover server: reporters for real users, simulated users, every HTTP call.

    Reporter("http://localhost:8000").report("New York, NY")

A public name is imported from its module when it is first used, so importing the package is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# ruff: noqa: F403
if TYPE_CHECKING:  # the list of names is `_MODULES`
    from ldprecover_client.answers import *
    from ldprecover_client.bulk import *
    from ldprecover_client.datasets import *
    from ldprecover_client.errors import *
    from ldprecover_client.http import *
    from ldprecover_client.jobs import *
    from ldprecover_client.journal import *
    from ldprecover_client.ledger import *
    from ldprecover_client.population import *
    from ldprecover_client.progress import *
    from ldprecover_client.reporter import *
    from ldprecover_client.retry import *
    from ldprecover_client.transport_security import *

_MODULES = {
    "answers": "Round RoundStatus RoundSummary",
    "bulk": "submit_reports",
    "datasets": "DATASETS Dataset load_dataset",
    "errors": "AccessError AlreadyReportedError ArgumentError CallerError ClientError DatasetError "
    "EpsilonSpentError EpsilonTooHighError InconsistentRoundError InvalidAnswerError JournalError "
    "LedgerError LimitError RefusedError SecondSeedError ServerError UnansweredError "
    "UnknownItemError UnknownProtocolError",
    "http": "AsyncClient Client",
    "jobs": "Job",
    "journal": "Journal",
    "ledger": "Entry Ledger",
    "population": "Population",
    "progress": "progress_bar",
    "reporter": "AsyncReporter Receipt Reporter",
    "retry": "Retries",
    "transport_security": "InsecureTransportWarning",
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}
__all__ = tuple(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0].startswith("ldprecover"):
            raise
        message = (
            f"{name} needs {error.name}, which is not installed: pip install 'ldprecover[client]'"
        )
        raise ImportError(message, name=error.name) from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
