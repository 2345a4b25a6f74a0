"""`file recompute`: estimate, recover and certify exported rounds offline."""

import logging
from collections.abc import Sequence
from contextlib import ExitStack
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from warnings import catch_warnings, simplefilter

from typer import Argument, Option

from ldprecover_cli.errors import UsageError, check_items, check_new
from ldprecover_cli.file.datasets import dataset_errors
from ldprecover_cli.file.export_files import read_export, write_export
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
from ldprecover_cli.output import JsonObject, note, print_json
from ldprecover_cli.result.certify import (
    Confidence,
    ItemSets,
    Leads,
    MaliciousShare,
    Means,
    Tops,
    questions_of,
)
from ldprecover_cli.signals import end_on_signals

if TYPE_CHECKING:
    from ldprecover import RoundExport
    from ldprecover.reports import ReportSource
    from ldprecover_cluster import ReportDataset


_RECOVERED = (
    *("method", "eta", "targets", "malicious", "genuine", "recovered"),
    *("notes", "conclusions"),
)
"""Fields of a recovery."""


def recompute(
    sources: Annotated[
        list[str],
        Argument(
            help="Files of `ldprecover round export`, or folders or URLs of `ldprecover file "
            "dataset`; several of the same parameters are added.",
            metavar="FILE|DATASET...",
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
    scheduler: Annotated[
        str | None,
        Option(
            help="Scheduler of a Dask cluster whose workers read the datasets: tcp://HOST:PORT, or "
            "tls://HOST:PORT with the certificates of Dask's own configuration.",
            metavar="URL",
        ),
    ] = None,
    output: NewJsonFile = None,
) -> None:
    """Estimate and recover exported rounds without a server, and print the columns as JSON.

    It verifies the checksum first. The numbers equal the server's, to the last bit. Rounds of
    several servers are added, if their parameters are the same.

    A method that uses reports gets only the counts of a file, and the reports of a dataset. Of GRR,
    HR and LLH the file is enough: its counts are the histogram of the reports. A Dask cluster can
    read the datasets; the numbers stay the same.

    With --malicious-share the field `certificate` is what `ldprecover result certify` states; for
    the dataset of one closed round, what it states with --reports.

    Example: ldprecover file recompute cities.json

    Example: ldprecover file recompute cities.json --method unmix --history may.json

    Example: ldprecover file recompute cities.json --malicious-share 0.01 --top 3

    Example: ldprecover file recompute north.json south.json

    Example: ldprecover file recompute cities --method fiad --scheduler tcp://127.0.0.1:8786
    """
    datasets = [] if all(map(_is_file, sources)) else _datasets(sources)
    if scheduler is not None and not datasets:
        raise UsageError("--scheduler needs a round's reports: name its dataset")
    exports = [each.export for each in datasets] or [read_export(Path(each)) for each in sources]
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
        if datasets:
            stack.enter_context(dataset_errors())
            stack.enter_context(end_on_signals())
            reports = _source(stack, datasets, exported, scheduler)
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


def _is_file(source: str) -> bool:
    return "://" not in source and not Path(source).is_dir()


def _datasets(sources: Sequence[str]) -> "list[ReportDataset]":
    """Return the datasets in folders or at URLs. Raises UsageError for files among them."""
    if any(map(_is_file, sources)):
        raise UsageError("name either files of exports or datasets, not both")
    with dataset_errors():
        from ldprecover_cluster import ReportDataset

        return [ReportDataset.open(source) for source in sources]


def _source(
    stack: ExitStack,
    datasets: "Sequence[ReportDataset]",
    exported: "RoundExport",
    scheduler: str | None,
) -> "ReportSource":
    """Return the source of all reports, whose counts are those of the export."""
    from ldprecover_client import progress_bar
    from ldprecover_cluster import DatasetSource, ReportDatasetError, connect

    # Errors are raised once; Dask would also log each, in many lines.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    client = None if scheduler is None else stack.enter_context(connect(scheduler))
    if client is not None and not client.nthreads():
        note(f"The scheduler {scheduler} has no workers yet; waiting for them.")
    on_progress = stack.enter_context(progress_bar("reports of a pass"))
    source = DatasetSource(
        datasets, client, progress=lambda _, read: on_progress(read, exported.tally.n)
    )
    # Anyone can compute a valid checksum, so the counts must equal those of the reports.
    if source.tally() != exported.tally:
        raise ReportDatasetError("the reports differ from the counts of their export")
    return source


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
