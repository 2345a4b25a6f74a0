"""`file recompute`: estimate, recover and certify exported rounds offline."""

from collections.abc import Sequence
from contextlib import ExitStack
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from warnings import catch_warnings, simplefilter

from typer import Argument, Option

from ldprecover_cli.errors import UsageError, check_items, check_new
from ldprecover_cli.file.export_files import is_parquet, read_export, write_export
from ldprecover_cli.option_values import method_options, number_or_text, support_of
from ldprecover_cli.options import (
    Canaries,
    Eta,
    KnownTargets,
    MaliciousModel,
    MethodOptions,
    NewJsonFile,
    RecoveryMethod,
    SupportFile,
)
from ldprecover_cli.output import JsonObject, print_json
from ldprecover_cli.result.certify import (
    Confidence,
    ItemSets,
    Leads,
    MaliciousShare,
    Means,
    Tops,
    questions_of,
)

if TYPE_CHECKING:
    from ldprecover import RoundExport
    from ldprecover.reports import ReportSource


_RECOVERED = (
    *("method", "eta", "targets", "malicious", "genuine", "recovered"),
    *("notes", "conclusions"),
)
"""Fields of a recovery."""


def recompute(
    sources: Annotated[
        list[Path],
        Argument(
            help="Files of `ldprecover round export`, or of `ldprecover file reports`; several of "
            "the same parameters are added.",
            metavar="FILE...",
        ),
    ],
    *,
    target: KnownTargets = None,
    eta: Eta = "0.2",
    method: RecoveryMethod = "auto",
    option: MethodOptions = None,
    malicious_model: MaliciousModel = "paper",
    support: SupportFile = None,
    history: Annotated[
        list[Path] | None,
        Option(
            help="An exported round over the same items that is known to be clean; repeat for "
            "several.",
            metavar="FILE",
        ),
    ] = None,
    canary: Canaries = None,
    malicious_share: MaliciousShare = None,
    confidence: Confidence = 0.95,
    items: ItemSets = None,
    ahead: Leads = None,
    top: Tops = None,
    mean_above: Means = None,
    output: NewJsonFile = None,
) -> None:
    """Estimate and recover exported rounds without a server, and print the columns as JSON.

    It verifies the checksum first. The numbers equal the server's, to the last bit. Rounds of
    several servers are added, if their parameters are the same.

    A method that uses reports reads a file of `ldprecover file reports`; of GRR, HR and LLH the
    export is enough.

    With --malicious-share the field `certificate` is that of `ldprecover result certify`; for the
    reports of one closed round, with its --reports.

    Example: ldprecover file recompute cities.json

    Example: ldprecover file recompute cities.json --method unmix --history may.json

    Example: ldprecover file recompute cities.json --malicious-share 0.01 --top 3

    Example: ldprecover file recompute north.json south.json

    Example: ldprecover file recompute cities.parquet --method fiad
    """
    from ldprecover_client import ReportFile, progress_bar, report_source

    files = [ReportFile.open(path) for path in sources if is_parquet(path)]
    if files and len(files) < len(sources):
        raise UsageError("name either exports, or files that all have reports")
    exports = [file.export for file in files] or [read_export(path) for path in sources]
    exported = reduce(add, exports)
    arguments = {
        "method": method,
        "eta": number_or_text(eta),
        "malicious_model": malicious_model,
        "support": support_of(support),
        "options": method_options(option),
    }
    check_items([*(target or ()), *(canary or ())], exported.parameters.items, None)
    past = [read_export(path) for path in history or []]
    questions = questions_of(items, ahead, top, mean_above, exported.parameters.items, None)
    if questions and malicious_share is None:
        raise UsageError("--items, --ahead, --top and --mean-above need --malicious-share")

    if output is not None:
        check_new(output)
    with ExitStack() as stack:
        reports = None
        if files:
            on_progress = stack.enter_context(progress_bar("reports of a pass"))
            n = exported.tally.n
            reports = report_source(files, progress=lambda _, read: on_progress(read, n))
        result = _columns(exported, target or [], canary or [], arguments, past, reports)
        if malicious_share is not None:
            fields = {
                "malicious_share": malicious_share,
                "confidence": confidence,
                "questions": questions,
            }
            has_seed = exported.seed is not None
            result["certificate"] = _certificate(exported, fields, reports if has_seed else None)
            if reports is not None and not has_seed:
                text = (
                    "The certificate is from the counts of all reports: one from reports needs "
                    "the seed of one closed round."
                )
                result["notes"] = [*result.get("notes", ()), text]
    if output is None:
        print_json(result)
    else:
        write_export(output, result)


def _columns(
    exported: "RoundExport",
    target: list[str],
    canary: list[str],
    arguments: JsonObject,
    history: "Sequence[RoundExport]",
    reports: "ReportSource | None",
) -> JsonObject:
    from ldprecover import CountsAloneWarning, RecoveryRequest
    from ldprecover.items import find_items

    items = exported.parameters.items
    result: JsonObject = {
        "round": exported.round,
        **({} if exported.question is None else {"question": exported.question}),
        "n": exported.tally.n,
        "items": items,
        "counts": exported.tally.counts(exported.parameters.oracle).tolist(),
    }
    if not exported.tally.n:
        return result
    estimates = exported.estimates()
    request = RecoveryRequest(
        targets=find_items(target, items),
        canaries=find_items(canary, items),
        **arguments,
    )
    with catch_warnings():
        simplefilter("ignore", CountsAloneWarning)  # a note says that no reports were filtered
        recovery = exported.recover(request, history=history, reports=reports)
    fields = recovery.to_dict(items)
    return result | {
        "frequencies": estimates.frequencies.tolist(),
        "standard_errors": estimates.standard_errors.tolist(),
        **{name: fields[name] for name in _RECOVERED},
    }


def _certificate(
    exported: "RoundExport", fields: JsonObject, reports: "ReportSource | None"
) -> JsonObject:
    """Return the certificate of an exported round: from its reports, if given, or counts.

    Raises ParameterError.
    """
    import json

    from pydantic import ValidationError

    from ldprecover import ParameterError
    from ldprecover_interface.certificates import CertificateRequest, certify_export
    from ldprecover_interface.invalid_fields import invalid_fields

    if reports is not None:
        fields = fields | {"reports": True}
    try:
        request = CertificateRequest.model_validate(fields)
    except ValidationError as error:
        schema = CertificateRequest.model_json_schema()
        (field, reason), *_ = invalid_fields(error.errors(), fields, schema)
        raise ParameterError(f"{field} {reason}") from None
    try:
        certificate = certify_export(exported, request, reports)
    except ImportError as error:
        raise UsageError(str(error)) from error
    result: JsonObject = json.loads(certificate.to_json())
    return result
