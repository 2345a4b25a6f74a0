"""Errors of the client: a tree by cause.

`CallerError` is a wrong argument or request, `LimitError` the user's own privacy limit,
`LedgerError` a file on this machine, `RefusedError` a problem stated by the server, `ServerError`
a response that breaks the interface, and `UnansweredError` the network or a busy server. No message
contains a user's value: messages may be logged.
"""

from ldprecover.errors import LDPRecoverError, ParameterError


class ClientError(LDPRecoverError):
    """Base of every error this package raises on purpose."""


class CallerError(ClientError):
    """The caller asked for something impossible."""


class ArgumentError(CallerError, ParameterError):
    """An argument or a URL is outside its range; the message names both."""


class UnknownItemError(CallerError, ValueError):
    """The value is not an item of the round. The message does not repeat it."""


class UnknownProtocolError(CallerError):
    """The round's protocol is a plugin that is not loaded here. Nothing was perturbed or sent."""


class AccessError(CallerError):
    """The round needs a key or ticket, or takes no ticket. Nothing was perturbed or sent.

    `needs` is "key", "ticket", or None if the round takes reports without either.
    """

    def __init__(self, message: str, needs: str | None) -> None:
        self.needs = needs
        super().__init__(message)


class AlreadyReportedError(CallerError):
    """The ledger has this round's answered report; a second would cost epsilon again."""


class DatasetError(CallerError, ValueError):
    """A file does not contain items and counts; the message names the place and reason."""


class ReportFileError(CallerError, ValueError):
    """A file of reports is damaged, belongs to another round, or needs pyarrow."""


class OddLabelsError(DatasetError):
    """Lines of a file may be no items; `as_is` takes them."""


class LimitError(ClientError):
    """A privacy limit of the user forbids this report. Nothing was perturbed or sent."""


class EpsilonTooHighError(LimitError):
    """The round's epsilon is above the user's limit for one round."""


class EpsilonSpentError(LimitError):
    """With this round, the epsilon of all rounds in the ledger exceeds the user's total."""


class LedgerError(ClientError):
    """The ledger file cannot be opened, trusted or written. Nothing was perturbed."""


class RefusedError(ClientError):
    """The server refused a request with a problem (RFC 9457).

    `status` is the HTTP status, `type` and `title` the kind of problem, `detail` its reason or
    None, `position` the index of the first bad report or None, `fields` pairs of an invalid request
    field and the reason. `in_doubt` says that an earlier try of the call had no final answer, so
    the server may have processed that one.
    """

    in_doubt = False

    def __init__(
        self,
        status: int,
        title: str,
        detail: str | None = None,
        type: str = "about:blank",
        position: int | None = None,
        fields: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self.status = status
        self.title = title
        self.detail = detail
        self.type = type
        self.position = position
        self.fields = fields
        where = f" (report {position})" if position is not None else ""
        super().__init__(f"{title}{where}{_without_title(title, detail)}")

    @property
    def slug(self) -> str:
        """The fragment of `type`, such as "round-closed", or an empty string."""
        return self.type.rpartition("#")[2] if "#" in self.type else ""


def _without_title(title: str, detail: str | None) -> str:
    """Return the detail as it follows its title, which it does not repeat."""
    if not detail:
        return ""
    if (
        detail.casefold().startswith(title.casefold())
        and not detail[len(title) : len(title) + 1].isalnum()
    ):
        return detail[len(title) :]
    return f": {detail}"


class ServerError(ClientError):
    """The server, or a proxy before it, does not follow the interface."""


class InvalidAnswerError(ServerError):
    """A response has a wrong form or field, or is too large."""


class InconsistentRoundError(ServerError):
    """A round's p, q, thresholds, hash range or digest contradict its protocol and items."""


class UnansweredError(ClientError):
    """No retry got a final answer: the network failed, or the server is down or busy.

    Sending the same bytes again under the same key is safe. `status` is that of the last response
    (408, 429 or 5xx) or None, `retry_after` the seconds that it asked to wait or None. `in_doubt`
    says whether the server may have processed a try; it is False if no connection was made.
    """

    def __init__(
        self,
        message: str,
        status: int | None = None,
        retry_after: float | None = None,
        *,
        in_doubt: bool = True,
    ) -> None:
        self.status = status
        self.retry_after = retry_after
        self.in_doubt = in_doubt
        super().__init__(message)


class InsecureTransportWarning(UserWarning):
    """A key or ticket is sent over plain http:// to another machine.

    Anyone on the network path can read and use it.
    """
