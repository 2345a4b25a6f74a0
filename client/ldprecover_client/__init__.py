"""The client of a round: reporters for real users, populations for simulations, a client of a
server.

    Reporter("http://localhost:8000").report("New York, NY")

Names load when they are first used: importing the package is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ldprecover_client.answers import Round, RoundStatus, RoundSummary
    from ldprecover_client.bulk import submit_reports
    from ldprecover_client.datasets import DATASETS, Dataset, load_dataset
    from ldprecover_client.errors import (
        AccessError,
        AlreadyReportedError,
        ArgumentError,
        CallerError,
        ClientError,
        DatasetError,
        EpsilonSpentError,
        EpsilonTooHighError,
        InconsistentRoundError,
        InvalidAnswerError,
        JournalError,
        LedgerError,
        LimitError,
        RefusedError,
        SecondSeedError,
        ServerError,
        UnansweredError,
        UnknownItemError,
        UnknownProtocolError,
    )
    from ldprecover_client.http import AsyncClient, Client
    from ldprecover_client.jobs import Job
    from ldprecover_client.journal import Journal
    from ldprecover_client.ledger import Entry, Ledger
    from ldprecover_client.population import Population
    from ldprecover_client.progress import progress_bar
    from ldprecover_client.reporter import AsyncReporter, Receipt, Reporter
    from ldprecover_client.retry import Retries
    from ldprecover_client.secrecy import InsecureTransportWarning

__all__ = [
    "DATASETS",
    "AccessError",
    "AlreadyReportedError",
    "ArgumentError",
    "AsyncClient",
    "AsyncReporter",
    "CallerError",
    "Client",
    "ClientError",
    "Dataset",
    "DatasetError",
    "Entry",
    "EpsilonSpentError",
    "EpsilonTooHighError",
    "InconsistentRoundError",
    "InsecureTransportWarning",
    "InvalidAnswerError",
    "Job",
    "Journal",
    "JournalError",
    "Ledger",
    "LedgerError",
    "LimitError",
    "Population",
    "Receipt",
    "RefusedError",
    "Reporter",
    "Retries",
    "Round",
    "RoundStatus",
    "RoundSummary",
    "SecondSeedError",
    "ServerError",
    "UnansweredError",
    "UnknownItemError",
    "UnknownProtocolError",
    "load_dataset",
    "progress_bar",
    "submit_reports",
]

_MODULES = {
    "answers": ("Round", "RoundStatus", "RoundSummary"),
    "bulk": ("submit_reports",),
    "datasets": ("DATASETS", "Dataset", "load_dataset"),
    "http": ("AsyncClient", "Client"),
    "jobs": ("Job",),
    "journal": ("Journal",),
    "ledger": ("Entry", "Ledger"),
    "population": ("Population",),
    "progress": ("progress_bar",),
    "reporter": ("AsyncReporter", "Receipt", "Reporter"),
    "retry": ("Retries",),
    "secrecy": ("InsecureTransportWarning",),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(import_module(f"{__name__}.{_HOME.get(name, 'errors')}"), name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0].startswith("ldprecover"):
            raise
        said = (
            f"{name} needs {error.name}, which is not installed: pip install 'ldprecover[client]'"
        )
        raise ImportError(said, name=error.name) from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
