"""What the service refuses, and why: each refusal is a class, and says how it is answered.

ServiceError
├── requests        cannot be read, or do not fit the interface
│   ├── NotFoundError, MethodNotAllowedError
│   ├── NotHttpError, HeadTooLargeError, HeaderError, CrossOriginError
│   ├── MalformedBodyError, BodyTooLargeError, BodyTimeoutError
│   ├── UnsupportedMediaTypeError, UnsupportedTransferEncodingError
│   └── InvalidRequestError, InvalidParameterError
├── callers         may not, or not yet
│   ├── UnauthorizedError, ForbiddenError, ReportKeyNeededError, InvalidTicketError
│   └── RateLimitedError, WrongTriesError
├── rounds          are not there, or their state forbids it
│   ├── RoundNotFoundError, RoundReplacedError, NoCurrentRoundError
│   └── RoundClosedError, NameTakenError, SeriesMismatchError, PluginNotLoadedError
├── submissions     cannot be stored as they are
│   └── TooManyReportsError, InvalidReportError, KeyReusedError
├── analyses        cannot be worked out, or not now
│   ├── JobNotFoundError, NoReportsError, ReportsGoneError
│   └── AnalysesBusyError, AnalysisTimeoutError, AnalysisTooLargeError, AnalysisFailedError
└── service         cannot at present, whoever asks
    ├── QueueFullError, BusyError, StoreUnavailableError, StorageFullError, DatabaseGoneError
    └── InternalError

ConfigurationError      the operator's settings cannot work; the server does not start
KeyNotFoundError        the operator names a key that is not there
"""

from collections.abc import Iterator

from ldprecover.errors import ContractError, LDPRecoverError, ReportError
from ldprecover_server.errors.analyses import (
    AnalysesBusyError,
    AnalysisFailedError,
    AnalysisTimeoutError,
    AnalysisTooLargeError,
    JobNotFoundError,
    NoReportsError,
    ReportsGoneError,
)
from ldprecover_server.errors.base import ServiceError
from ldprecover_server.errors.callers import (
    ForbiddenError,
    InvalidTicketError,
    RateLimitedError,
    ReportKeyNeededError,
    UnauthorizedError,
    WrongTriesError,
)
from ldprecover_server.errors.operators import ConfigurationError, KeyNotFoundError
from ldprecover_server.errors.requests import (
    BodyTimeoutError,
    BodyTooLargeError,
    CrossOriginError,
    HeaderError,
    HeadTooLargeError,
    InvalidParameterError,
    InvalidRequestError,
    MalformedBodyError,
    MethodNotAllowedError,
    NotFoundError,
    NotHttpError,
    UnsupportedMediaTypeError,
    UnsupportedTransferEncodingError,
)
from ldprecover_server.errors.rounds import (
    NameTakenError,
    NoCurrentRoundError,
    PluginNotLoadedError,
    RoundClosedError,
    RoundNotFoundError,
    RoundReplacedError,
    SeriesMismatchError,
)
from ldprecover_server.errors.service import (
    BusyError,
    DatabaseGoneError,
    InternalError,
    QueueFullError,
    StorageFullError,
    StoreUnavailableError,
)
from ldprecover_server.errors.submissions import (
    InvalidReportError,
    KeyReusedError,
    TooManyReportsError,
)

__all__ = [
    "AnalysesBusyError",
    "AnalysisFailedError",
    "AnalysisTimeoutError",
    "AnalysisTooLargeError",
    "BodyTimeoutError",
    "BodyTooLargeError",
    "BusyError",
    "ConfigurationError",
    "CrossOriginError",
    "DatabaseGoneError",
    "ForbiddenError",
    "HeadTooLargeError",
    "HeaderError",
    "InternalError",
    "InvalidParameterError",
    "InvalidReportError",
    "InvalidRequestError",
    "InvalidTicketError",
    "JobNotFoundError",
    "KeyNotFoundError",
    "KeyReusedError",
    "MalformedBodyError",
    "MethodNotAllowedError",
    "NameTakenError",
    "NoCurrentRoundError",
    "NoReportsError",
    "NotFoundError",
    "NotHttpError",
    "PluginNotLoadedError",
    "QueueFullError",
    "RateLimitedError",
    "ReportKeyNeededError",
    "ReportsGoneError",
    "RoundClosedError",
    "RoundNotFoundError",
    "RoundReplacedError",
    "SeriesMismatchError",
    "ServiceError",
    "StorageFullError",
    "StoreUnavailableError",
    "TooManyReportsError",
    "UnauthorizedError",
    "UnsupportedMediaTypeError",
    "UnsupportedTransferEncodingError",
    "WrongTriesError",
    "every_refusal",
    "refusal_of",
]


def every_refusal() -> Iterator[type[ServiceError]]:
    """Yield the class of every refusal there is, by slug."""
    found: dict[str, type[ServiceError]] = {}
    ahead: list[type[ServiceError]] = [ServiceError]
    while ahead:
        cls = ahead.pop()
        ahead += cls.__subclasses__()
        if "slug" in vars(cls):
            found[cls.slug] = cls
    yield from (found[slug] for slug in sorted(found))


def refusal_of(error: Exception) -> ServiceError:
    """Return the refusal that answers an error of the service or of the mathematics."""
    if isinstance(error, ServiceError):
        return error
    if isinstance(error, ContractError):
        return AnalysisFailedError(str(error))
    if isinstance(error, ReportError):
        return InvalidReportError(error.reason, error.position)
    assert isinstance(error, LDPRecoverError)
    return InvalidParameterError(str(error))
