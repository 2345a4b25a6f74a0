"""Client of an LDPRecover server: reporters for real users, simulated users, every HTTP call.

    Reporter("http://localhost:8000").report("New York, NY")

A public name is imported from its module when it is first used, so importing the package is quick.
"""

from typing import TYPE_CHECKING

from ldprecover.lazy_names import lazy_getattr

# ruff: noqa: F403
if TYPE_CHECKING:  # the list of names is `_MODULES`
    from ldprecover_client.answers import *
    from ldprecover_client.bulk import *
    from ldprecover_client.datasets import *
    from ldprecover_client.errors import *
    from ldprecover_client.http import *
    from ldprecover_client.ledger import *
    from ldprecover_client.panel import *
    from ldprecover_client.population import *
    from ldprecover_client.progress import *
    from ldprecover_client.report_files import *
    from ldprecover_client.reporter import *
    from ldprecover_client.retries import *
    from ldprecover_client.usage import *

_MODULES = {
    "answers": "Changed Form Frequencies Recovered Round RoundStatus RoundSummary Series TopItem "
    "Verdict",
    "bulk": "BulkReceipt submit_reports",
    "datasets": "DATASETS Dataset load_dataset load_items",
    "errors": "AccessError AlreadyReportedError ArgumentError CallerError ClientError DatasetError "
    "EpsilonSpentError EpsilonTooHighError InconsistentRoundError InsecureTransportWarning "
    "InvalidAnswerError LedgerError LimitError OddLabelsError RefusedError ReportFileError "
    "ServerError UnansweredError UnknownItemError UnknownProtocolError",
    "http": "Client",
    "ledger": "Entry Ledger",
    "panel": "Panel PanelRound",
    "population": "FormPopulation Population",
    "progress": "progress_bar",
    "report_files": "ReportFile report_source write_report_file",
    "reporter": "Receipt Reporter",
    "retries": "Retries",
    "usage": "Usage",
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}
__all__ = tuple(_MODULE_OF)
__getattr__ = lazy_getattr(__name__, _MODULE_OF, "client")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
