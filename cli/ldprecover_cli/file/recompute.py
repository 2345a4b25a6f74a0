"""`file recompute`: estimate, recover and certify an exported round offline."""

import errno
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from warnings import catch_warnings, simplefilter

from typer import Argument, Option

from ldprecover_cli.engines import Jobs, SchedulerUrl, TlsCa, TlsCert, TlsKey, scheduler_of
from ldprecover_cli.errors import UsageError, check_items, file_errors
from ldprecover_cli.file.export_files import read_export, write_export
from ldprecover_cli.options import (
    Eta,
    KnownTargets,
    MaliciousModel,
    MethodOptions,
    NewJsonFile,
    RecoveryMethod,
    SupportFile,
    eta_of,
    method_options,
    support_of,
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
    from ldprecover.recovery import ReportSource
    from ldprecover_cluster import ReportDataset, Scheduler


def recompute(
    file: Annotated[
        Path,
        Argument(
            help="File of `ldprecover round export` or `ldprecover file merge`.", metavar="FILE"
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
    malicious_share: MaliciousShare = None,
    confidence: Confidence = 0.95,
    items: ItemSets = None,
    ahead: Leads = None,
    top: Tops = None,
    mean_above: Means = None,
    reports: Annotated[
        list[str] | None,
        Option(
            help="A dataset of `ldprecover file dataset`; repeat it for each round of a merged "
            "export.",
            metavar="FOLDER|URL",
        ),
    ] = None,
    partial: Annotated[
        bool, Option("--partial", help="Accept a dataset that lacks reports, and use those it has.")
    ] = False,
    jobs: Jobs = 1,
    scheduler: SchedulerUrl = None,
    tls_ca: TlsCa = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    output: NewJsonFile = None,
) -> None:
    """Estimate and recover an exported round without a server, and print the columns as JSON.

    It verifies the checksum first. The numbers equal the server's, to the last bit.

    A method that uses reports gets only the counts, unless --reports names the round's dataset. Of
    GRR, HR and LLH the export is enough: its counts are the histogram of the reports.
    Several processes or a Dask cluster can read the dataset; the numbers stay the same.

    With --malicious-share the field `certificate` is what `ldprecover result certify` states; with
    all reports of a round that was closed, what it states with --reports. A note says why a
    certificate is from the counts although --reports names a dataset.

    Example: ldprecover file recompute cities.json

    Example: ldprecover file recompute cities.json --method unmix --history may.json

    Example: ldprecover file recompute cities.json --malicious-share 0.01 --top 3

    Example: ldprecover file recompute cities/_round.json --reports cities --method fiad --jobs 2
    """
    exported = read_export(file)
    arguments = {
        "method": method,
        "eta": eta_of(eta),
        "malicious_model": malicious_model,
        "support": support_of(support),
        "options": method_options(option),
    }
    past = [read_export(path) for path in history or []]
    questions = questions_of(items, ahead, top, mean_above, exported.parameters.items, None)
    if questions and malicious_share is None:
        raise UsageError("--items, --ahead, --top and --mean-above need --malicious-share")

    def recover(export: "RoundExport", reports: "ReportSource | None" = None) -> JsonObject:
        result = _columns(export, target or [], arguments, past, reports)
        if malicious_share is not None:
            fields = {
                "malicious_share": malicious_share,
                "confidence": confidence,
                "questions": questions,
            }
            obstacle = None if reports is None else _obstacle(exported, export)
            all_reports = reports if obstacle is None else None
            result["certificate"] = _certificate(exported, fields, all_reports)
            if obstacle is not None:
                text = f"The certificate is from the counts of all reports: {obstacle}."
                result["notes"] = [*result.get("notes", ()), text]
        return result

    if output is not None and output.exists():
        with file_errors("write", output):
            raise FileExistsError(errno.EEXIST, "it exists")
    cluster = scheduler_of(scheduler, jobs, tls_ca, tls_cert, tls_key)
    if reports:
        datasets = _datasets(exported, reports)
        with end_on_signals():
            result = _from_reports(exported, datasets, partial, jobs, cluster, recover)
    elif partial or jobs > 1 or cluster:
        raise UsageError(
            "--partial, --jobs and --scheduler need a round's reports: name its dataset with "
            "--reports"
        )
    else:
        result = recover(exported)
    if output is None:
        print_json(result)
    else:
        write_export(output, result)


def _datasets(exported: "RoundExport", folders: Sequence[str]) -> "list[ReportDataset]":
    """Return the datasets in folders. Raises UsageError unless they are its rounds."""
    from ldprecover import ParameterError, RoundExport
    from ldprecover_cluster import ReportDataset

    datasets = [ReportDataset.open(folder) for folder in folders]
    try:
        together = RoundExport.merge([dataset.export for dataset in datasets], called=list(folders))
    except ParameterError as error:
        raise UsageError(str(error)) from error
    names = " and ".join(folders)
    if together.parameters.digest != exported.parameters.digest:
        raise UsageError(f"{names}: the datasets and the export have different parameters")
    if _rounds(together) != _rounds(exported):
        raise UsageError(
            f"{names}: the datasets are of {_named(together)}, and the export is of "
            f"{_named(exported)}"
        )
    tally = together.tally
    if tally.n != exported.tally.n or (tally.summary != exported.tally.summary).any():
        raise UsageError(
            f"{names}: the datasets have {tally.n:,} reports and the export {exported.tally.n:,}: "
            "they were written at different times; use the _round.json of each dataset as export"
        )
    return datasets


def _rounds(export: "RoundExport") -> list[str]:
    return [round.round for round in export.merged] or [export.round]


def _named(export: "RoundExport") -> str:
    names = [f"{round.name} ({round.round})" for round in export.merged or [export]]
    return f"the round{'' if len(names) == 1 else 's'} {' and '.join(names)}"


def _from_reports(
    exported: "RoundExport",
    datasets: "Sequence[ReportDataset]",
    partial: bool,
    jobs: int,
    scheduler: "Scheduler | None",
    recover: "Callable[[RoundExport, ReportSource], JsonObject]",
) -> JsonObject:
    from ldprecover.recovery import ReportSource
    from ldprecover_client import progress_bar
    from ldprecover_cluster import engine

    missing = sum(dataset.missing for dataset in datasets)
    if missing and not partial:
        raise UsageError(
            f"the dataset lacks {missing:,} of the round's {exported.tally.n:,} reports; --partial "
            "uses the others"
        )
    parts = [part for dataset in datasets for part in dataset.parts]
    n = sum(part.n for part in parts)
    with (
        progress_bar("reports of a pass") as progress,
        engine(jobs, scheduler, notify=note) as executor,
    ):

        def on_progress(passes: int, read: int) -> None:
            progress(read, n)

        # Anyone can compute a valid checksum, so the counts must equal those of the reports.
        tallies = [dataset.tally(executor=executor, progress=on_progress) for dataset in datasets]
        source = ReportSource.of_parts(
            exported.parameters.oracle, parts, executor=executor, progress=on_progress
        )
        if not missing:
            return recover(exported, source)
        available = replace(exported, tally=reduce(add, tallies), merged=(), reports=None)
        result = recover(available, source)
    lacking = (
        f"The dataset lacks {missing:,} of the round's {exported.tally.n:,} reports: all numbers "
        "are of the others."
    )
    return result | {"notes": [*result.get("notes", ()), lacking]}


def _columns(
    exported: "RoundExport",
    target: list[str],
    arguments: JsonObject,
    history: "Sequence[RoundExport]",
    reports: "ReportSource | None",
) -> JsonObject:
    from ldprecover import CountsAloneWarning, RecoveryRequest
    from ldprecover.items import with_labels

    items = exported.parameters.items
    result: JsonObject = {
        "round": exported.round,
        "n": exported.tally.n,
        "items": items,
        "counts": exported.tally.counts(exported.parameters.oracle).tolist(),
    }
    if not exported.tally.n:
        return result
    check_items(target, items, None)
    estimates = exported.estimates()
    request = RecoveryRequest(targets=[items.index(label) for label in target], **arguments)
    with catch_warnings():
        simplefilter("ignore", CountsAloneWarning)  # a note says that no reports were filtered
        recovery = exported.recover(request, history=history, reports=reports)
    return result | {
        "frequencies": estimates.frequencies.tolist(),
        "standard_errors": estimates.standard_errors.tolist(),
        "method": recovery.method,
        "eta": recovery.eta,
        "targets": list(recovery.targets),
        "malicious": recovery.malicious.tolist(),
        "genuine": recovery.genuine.tolist(),
        "recovered": recovery.recovered.tolist(),
        "notes": [with_labels(note, items) for note in recovery.notes],
        "conclusions": None
        if recovery.conclusions is None
        else recovery.conclusions.to_dict(items),
    }


def _obstacle(exported: "RoundExport", available: "RoundExport") -> str | None:
    """Return why a certificate cannot be from the available reports, None if it can."""
    if available is not exported:
        return "one from reports needs all of them, and the dataset lacks some"
    if exported.seed is None:
        return "one from reports needs the seed of a closed round, and the export has none"
    return None


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
