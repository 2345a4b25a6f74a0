"""What can go wrong between a user and a round, by who is at fault.

    ClientError ├── CallerError                   you: what was asked for cannot be done │   ├──
    ArgumentError             an argument or a URL is outside its range │   ├── UnknownItemError
    the value is not an item of the round │   ├── UnknownProtocolError      the round's protocol is
    a plugin that is not loaded here │   ├── AccessError               the round wants a key or a
    ticket, or takes no ticket │   ├── AlreadyReportedError      this ledger already holds the
    round's one report │   └── DatasetError              a file that cannot be read as items and
    counts ├── LimitError                    your own privacy limits say no; nothing was perturbed
    or sent │   ├── EpsilonTooHighError       the round's epsilon is above your limit for one round
    │   ├── EpsilonSpentError         with this round, all rounds together would be above your total
    │   └── SecondSeedError           your ticket picks another seed than the one your report to
    this round has ├── LedgerError                   this machine: the ledger cannot be read,
    trusted or written ├── JournalError                  this machine: the journal of a run cannot
    be read or written ├── RefusedError                  the server understood and said no; it names
    its reason ├── ServerError                   the server, or something that answers in its place
    │   ├── InvalidAnswerError        an answer that does not fit this interface │   └──
    InconsistentRoundError    parameters of a round that contradict each other └── UnansweredError
    the network, or a server that is down or too busy: try again later

Messages never hold a user's value: they may end up in logs, and a value must not leave its user.
"""


class ClientError(Exception):
    """Base of every error this package raises on purpose."""


class CallerError(ClientError):
    """What was asked for cannot be done."""


class ArgumentError(CallerError, ValueError):
    """An argument is outside its range; the message names it and the range."""


class UnknownItemError(CallerError, ValueError):
    """The value is not an item of the round. The message does not repeat it."""


class UnknownProtocolError(CallerError):
    """The round's protocol is not known here. Nothing was perturbed for it or sent."""


class AccessError(CallerError):
    """The round does not take reports with what was given. Nothing was perturbed for it or sent.

    `needs` is what the round takes reports with: "key", "ticket", or None for neither.
    """

    def __init__(self, message: str, needs: str | None) -> None:
        self.needs = needs
        super().__init__(message)


class AlreadyReportedError(CallerError):
    """The round's one report was made before, and it was answered: a second would cost epsilon
    again.
    """


class DatasetError(CallerError, ValueError):
    """A file cannot be read as items and counts; the message says where and why."""


class LimitError(ClientError):
    """A privacy limit of the user forbids this round."""


class EpsilonTooHighError(LimitError):
    """The round's epsilon is above the user's limit for one round."""


class EpsilonSpentError(LimitError):
    """This round would take the epsilon of all rounds in the ledger above the user's total."""


class SecondSeedError(LimitError):
    """A ticket picks another seed than the user has for the round: a value under two seeds tells
    more of it.
    """


class LedgerError(ClientError):
    """The ledger file cannot be opened, trusted or written, so nothing may be perturbed."""


class JournalError(ClientError):
    """The journal of a run cannot be read or written, so that the run could not go on after an
    interruption.
    """


class RefusedError(ClientError):
    """The server refused a request with a problem (RFC 9457).

    `status` is the HTTP status, `type` and `title` the kind of problem, `detail` its reason in
    words or None, `position` the index of the first bad report or None, `fields` each field of the
    request that does not fit the interface, with the reason. `in_doubt` says that an earlier try of
    the same call was not answered for good, so that it may have been taken all the same.
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
        super().__init__(f"{title}{where}{_after(title, detail)}")

    @property
    def slug(self) -> str:
        """The heading that `type` points to, such as "round-closed"; empty without one."""
        return self.type.rpartition("#")[2] if "#" in self.type else ""


def _after(title: str, detail: str | None) -> str:
    """Return what follows a title: its detail, without the title's own words where it begins with
    them.
    """
    if not detail:
        return ""
    if (
        detail.casefold().startswith(title.casefold())
        and not detail[len(title) : len(title) + 1].isalnum()
    ):
        return detail[len(title) :]
    return f": {detail}"


class ServerError(ClientError):
    """The server, or what answers in its place, does not keep the interface."""


class InvalidAnswerError(ServerError):
    """An answer does not fit this interface: not its form, not its fields, or too large."""


class InconsistentRoundError(ServerError):
    """A round's p, q, thresholds, hash range or digest do not fit its protocol, epsilon and
    items.
    """


class UnansweredError(ClientError):
    """No answer that settles the request, after every retry: it may or may not have arrived.

    Sending the same bytes again under the same key is safe. `status` is that of the last answer
    (408, 429 or 5xx), None if none came; `retry_after` the seconds the server asked to wait, or
    None. `in_doubt` is False where no try can have arrived, since there was never a connection.
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
