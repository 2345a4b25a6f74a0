"""Results of a round: frequencies, recoveries and their methods, certificates, and alarms."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic_core import to_json
from starlette.responses import Response

from ldprecover import Estimates, Tally
from ldprecover.estimation.means import ITEMS, Mean
from ldprecover.evidence.alarms import DEFAULT_RATE, LEAST_RATE, alarm_sentences
from ldprecover.items import MAX_CANARIES
from ldprecover_interface import paths, results
from ldprecover_interface.analysis import Alarms, AlarmStatus, MethodOption, Methods, MethodSummary
from ldprecover_interface.base import MAX_HISTORY, Window
from ldprecover_interface.certificates import CertificateRequest, Certified, certified
from ldprecover_interface.changes import Changed, ChangesRequest
from ldprecover_interface.results import (
    WINDOW_BEFORE,
    Eta,
    Frequencies,
    MaliciousModel,
    Recovered,
    RecoveryConclusions,
    RecoveryQuery,
    RoundResult,
)
from ldprecover_server.analysis.comparisons import compare
from ldprecover_server.errors import NotComparableError, RoundOpenError, ShareTooSmallError
from ldprecover_server.http.bodies import body_schema, json_body
from ldprecover_server.http.csv import AS_CSV, Format, csv
from ldprecover_server.http.dependencies import (
    KEY_IF_NEEDED,
    Caller,
    ReadableRound,
    Reader,
    RoundOrCurrent,
)
from ldprecover_server.http.problems import ANALYSIS, BODY, READ, problems
from ldprecover_server.http.responses import cancel_on_disconnect, json_response, not_modified
from ldprecover_server.rounds import Window as WindowRounds
from ldprecover_server.storage import StoredRound, decode_labels

router = APIRouter(tags=["results"])
round_router = APIRouter(prefix=paths.ROUND, tags=["results"])
"""The routes that need a round in the path."""

_OTHER_BYTES = 4096 + 160 * MAX_HISTORY  # of a request beside its columns
_NUMBER_BYTES = 26  # of one JSON number at most, with comma and space

_NO_METHOD = (
    "The request names no method, so this is LDPRecover, the paper's. The recommended method is "
    "auto."
)

_NUMBERS = to_json(ITEMS)
"""The labels of a round for numbers."""


@router.get(
    paths.FREQUENCIES,
    response_model=Frequencies,
    responses={
        200: AS_CSV,
        304: {"description": "No report was added since the response with this ETag."},
        **problems(*READ),
    },
    openapi_extra=KEY_IF_NEEDED,
)
async def get_frequencies(
    request: Request,
    round: RoundOrCurrent,
    caller: Reader,
    window: Annotated[Window, Query()] = 1,
    form: Format = "json",
) -> Response:
    """Return unbiased, unclipped estimates with standard errors.

    They include every report that was accepted before the call. With the `ETag` of an earlier
    response in `If-None-Match`, the response is 304 as long as no report was added.
    """
    rounds = caller.services.rounds

    def respond() -> Response:
        stored = rounds.readable(round, caller.key)
        chosen = rounds.window(stored, window, caller.key)
        tally = rounds.tally(*chosen)
        # A window only loses rounds, and their tallies only grow, so these numbers name both.
        suffix = "" if form == "json" else f"-{form}"
        etag = f'W/"{stored.id}-{tally.n}-{len(chosen)}{suffix}"'
        headers = {"ETag": etag, "Cache-Control": "no-cache"}
        if unchanged := not_modified(request, headers):
            return unchanged
        with caller.services.limits.write(stored.oracle.domain_size):
            labels = rounds.labels(stored)
            message = _frequencies(_head(chosen, window), stored, labels, tally)
            response = _write(message, labels, "frequencies", form)
        response.headers.update(headers)
        return response

    return await caller.respond(respond)


def _write(message: RoundResult, labels: bytes, name: str, form: Format) -> Response:
    """Return a result as JSON, or its columns as CSV."""
    if form == "json":
        message.items = []
        return json_response(message, labels=labels)
    message.items = decode_labels(labels)
    columns = message.columns
    rows = zip(*columns.values(), strict=True)
    return csv(f"{name}-{message.round}", tuple(columns), rows, form)


def _frequencies(
    head: dict[str, Any], round: StoredRound, labels: bytes, tally: Tally
) -> Frequencies:
    oracle = round.oracle
    questions = round.form_size or 1
    estimates = Estimates.of(oracle, tally, questions=questions) if tally.n else None
    optional: dict[str, Any] = {}
    if estimates and (notes := estimates.notes):
        optional["notes"] = notes
    if labels == _NUMBERS and oracle.traits.one_item:  # as `is_for_numbers`, without parameters
        optional["mean"] = _mean(round, tally)
    return Frequencies.model_construct(
        **head,
        protocol=oracle.protocol,
        epsilon=oracle.epsilon,
        n=tally.n,
        p=oracle.p,
        q=oracle.q,
        items=[],
        counts=tally.counts(oracle).tolist(),
        frequencies=estimates.frequencies.tolist() if estimates else None,
        standard_errors=estimates.standard_errors.tolist() if estimates else None,
        sum=estimates.sum if estimates else None,
        sum_standard_error=estimates.sum_standard_error if estimates else None,
        **optional,
    )


def _head(window: WindowRounds, size: int) -> dict[str, Any]:
    """Return the fields of a result that name its round, its question and its window."""
    round = window[-1]
    head: dict[str, Any] = {"round": round.id}
    if round.question is not None:
        head["question"] = round.question
    if round.series is not None:
        head |= {"window": size, "numbers": [each.number for each in window]}
    return head


def _mean(round: StoredRound, tally: Tally) -> results.MeanEstimate | None:
    if not tally.n:
        return None
    mean = Mean.of(round.oracle, tally)
    low, high = mean.interval()
    return results.MeanEstimate(
        value=mean.value, standard_error=mean.standard_error, low=low, high=high
    )


def _max_bytes(round: StoredRound, caller: Caller) -> int:
    """Return the largest request about a round.

    It has every label, an index and a number for each item, the names of other rounds, and 4 KiB.
    """
    columns = round.labels_bytes + 2 * _NUMBER_BYTES * round.oracle.domain_size
    return min(columns + _OTHER_BYTES, caller.max_bytes)


@router.post(
    paths.RECOVER,
    response_model=Recovered,
    responses={200: AS_CSV, **problems(*READ, *BODY, *ANALYSIS)},
    openapi_extra=KEY_IF_NEEDED | body_schema(RecoveryQuery, required=False),
)
async def recover_frequencies(
    request: Request, round: ReadableRound, caller: Reader, form: Format = "json"
) -> Response:
    """Recover the frequencies: without a `method` by LDPRecover, the paper's; `auto` is the
    recommended one.
    """
    limit, default = _max_bytes(round, caller), RecoveryQuery()
    async with json_body(request, caller, RecoveryQuery, limit, default) as body:
        return await cancel_on_disconnect(request.receive, _recover(round, caller, body, form))


@round_router.get(
    paths.RECOVER,
    response_model=Recovered,
    responses={200: AS_CSV, **problems(*READ, *ANALYSIS)},
    openapi_extra=KEY_IF_NEEDED,
)
async def get_recovery(
    request: Request,
    round: ReadableRound,
    caller: Reader,
    method: Annotated[str, Query(description="As in POST.")] = "ldprecover",
    eta: Annotated[Eta, Query(description="As in POST.")] = 0.2,
    target: Annotated[
        list[str], Query(description="Label of a known target item; repeatable.")
    ] = [],  # noqa: B006  FastAPI copies it
    malicious_model: Annotated[MaliciousModel, Query(description="As in POST.")] = "paper",
    history: Annotated[
        list[str],
        Query(
            max_length=MAX_HISTORY,
            description="Id or name of a closed round over the same items that is known to be "
            f"clean, or `{WINDOW_BEFORE}`; repeatable.",
        ),
    ] = [],  # noqa: B006  FastAPI copies it
    window: Annotated[Window, Query()] = 1,
    form: Format = "json",
) -> Response:
    """Recover the frequencies as POST does: the address of a recovery, to share or to load."""
    fields: dict[str, Any] = {
        "eta": eta,
        "targets": target,
        "malicious_model": malicious_model,
        "history": history,
        "window": window,
    }
    if "method" in request.query_params:  # else the response says that none was named
        fields["method"] = method
    body = RecoveryQuery(**fields)
    return await cancel_on_disconnect(request.receive, _recover(round, caller, body, form))


async def _recover(
    round: StoredRound, caller: Caller, request: RecoveryQuery, form: Format
) -> Response:
    window = await _window(round, caller, request.window)
    recovery = await caller.services.analyses.recover(window, request, caller)

    def message(labels: bytes) -> Recovered:
        fields = recovery.to_dict(decode_labels(labels))
        if "method" not in request.model_fields_set:
            fields["notes"].append(_NO_METHOD)
        if (conclusions := fields["conclusions"]) is not None:
            fields["conclusions"] = RecoveryConclusions.model_validate(conclusions, strict=False)
        head = _head(window, request.window)
        model = request.malicious_model
        return Recovered.model_construct(**head, items=[], malicious_model=model, **fields)

    return await _respond(round, caller, message, recovery.method, form, item_bytes=32)


async def _window(round: StoredRound, caller: Caller, size: int) -> WindowRounds:
    return await caller.run(caller.services.rounds.window, round, size, caller.key)


async def _respond(
    round: StoredRound,
    caller: Caller,
    message: Callable[[bytes], RoundResult],
    name: str,
    form: Format,
    *,
    item_bytes: int,
) -> Response:
    """Return the response with the result that `message` makes of the labels, in a thread.

    A result, of `item_bytes` for each item, waits in memory for the thread.
    """
    limits, d = caller.services.limits, round.oracle.domain_size

    def respond() -> Response:
        with limits.write(d):
            labels = caller.services.rounds.labels(round)
            return _write(message(labels), labels, name, form)

    with limits.unwritten.hold(0 if caller.is_known else item_bytes * d):
        return await caller.respond(respond)


@round_router.post(
    paths.CERTIFICATE,
    response_model=Certified,
    responses={
        200: AS_CSV,
        **problems(*READ, *BODY, *ANALYSIS, RoundOpenError, ShareTooSmallError),
    },
    openapi_extra=KEY_IF_NEEDED | body_schema(CertificateRequest),
)
async def certify_round(
    request: Request, round: ReadableRound, caller: Reader, form: Format = "json"
) -> Response:
    """Return what the round proves about the honest users, whatever malicious users sent.

    The intervals hold for every attack by at most a share of the reports.
    """
    async with json_body(request, caller, CertificateRequest, _max_bytes(round, caller)) as body:
        return await cancel_on_disconnect(request.receive, _certify(round, caller, body, form))


async def _certify(
    round: StoredRound, caller: Caller, request: CertificateRequest, form: Format
) -> Response:
    window = await _window(round, caller, request.window)
    result = await caller.services.analyses.certify(window, request, caller)

    def message(labels: bytes) -> Certified:
        return certified(_head(window, request.window), result, decode_labels(labels))

    return await _respond(round, caller, message, "certificate", form, item_bytes=64)


@round_router.post(
    paths.CHANGES,
    response_model=Changed,
    responses={200: AS_CSV, **problems(*READ, *BODY, *ANALYSIS, NotComparableError)},
    openapi_extra=KEY_IF_NEEDED | body_schema(ChangesRequest, required=False),
)
async def compare_rounds(
    request: Request, round: ReadableRound, caller: Reader, form: Format = "json"
) -> Response:
    """Return what changed since an earlier round, or from one window of rounds to a later one.

    An item rose or fell if its interval excludes 0; all intervals hold together. Attacks come
    first: where a verdict sees one, the intervals that decide hold whatever malicious users sent.
    """
    limit, default = _max_bytes(round, caller), ChangesRequest()
    async with json_body(request, caller, ChangesRequest, limit, default) as body:
        return await cancel_on_disconnect(request.receive, _compare(round, caller, body, form))


async def _compare(
    round: StoredRound, caller: Caller, request: ChangesRequest, form: Format
) -> Response:
    services, size = caller.services, request.window
    window = await _window(round, caller, size)
    since = await caller.run(services.rounds.since, window, request.since, size, caller.key)
    fields = await compare(services.analyses, since, window, request, caller)

    def message(labels: bytes) -> Changed:
        head = _head(window, size) | {"since": since[-1].id}
        if since[-1].series is not None:
            head["since_numbers"] = [each.number for each in since]
        return Changed.model_construct(**head, items=[], **fields)

    return await _respond(round, caller, message, "changes", form, item_bytes=64)


@round_router.get(paths.METHODS, responses=problems(*READ), openapi_extra=KEY_IF_NEEDED)
async def list_methods(round: ReadableRound, caller: Reader) -> Methods:
    """List the recovery methods with their inputs and options, and whether this round fits them."""
    methods = await caller.services.analyses.methods(round, caller)
    summaries = [
        MethodSummary(
            name=method.name,
            summary=method.summary,
            needs=sorted(method.needs),
            source=source,
            better_with=sorted(method.better_with),
            uses=sorted(method.uses),
            gives=method.gives,
            cost=method.cost,
            options=[
                MethodOption(**asdict(option) | {"choices": list(option.choices)})
                for option in method.options
            ],
            available=reason is None,
            reason=reason,
        )
        for method, source, reason in methods
    ]
    return Methods(round=round.id, methods=summaries)


@round_router.get(
    paths.ALARMS,
    response_model=Alarms,
    responses={200: AS_CSV, **problems(*READ, *ANALYSIS)},
    openapi_extra=KEY_IF_NEEDED,
)
async def get_alarms(
    request: Request,
    round: ReadableRound,
    caller: Reader,
    rate: Annotated[
        float, Query(ge=LEAST_RATE, lt=0.5, description="False-alarm rate of each alarm.")
    ] = DEFAULT_RATE,
    canary: Annotated[
        list[str],
        Query(
            max_length=MAX_CANARIES,
            description="Label of an item that is known to be held by nobody; repeatable.",
        ),
    ] = [],  # noqa: B006  FastAPI copies it
    form: Format = "json",
) -> Response:
    """Test a round for reports that honest users do not send; some tests read all reports."""
    result = await cancel_on_disconnect(
        request.receive, caller.services.analyses.alarms(round, rate, canary, caller)
    )
    alarms = [
        AlarmStatus.model_construct(
            **{name: getattr(alarm, name) for name in AlarmStatus.model_fields}
        )
        for alarm in result.alarms
    ]
    if form != "json":
        rows = (tuple(alarm.model_dump().values()) for alarm in alarms)
        return csv(f"alarms-{round.id}", tuple(AlarmStatus.model_fields), rows, form)
    return json_response(
        Alarms.model_construct(
            round=round.id,
            n=result.n,
            reports_read=result.reports_read,
            alarms=alarms,
            sentences=alarm_sentences(result.alarms, result.n, has_reports=result.reports_read),
        )
    )
