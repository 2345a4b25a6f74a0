"""`recompute`: what the numbers of an exported round say without the server, and its reports where
they are given.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ldprecover_cli.engines import Jobs, SchedulerUrl, TlsCa, TlsCert, TlsKey, scheduler_of
from ldprecover_cli.errors import UsageError, check_items
from ldprecover_cli.export_files import read_export, write_export
from ldprecover_cli.options import (
    Eta,
    MaliciousModel,
    MethodOptions,
    RecoveryMethod,
    SupportFile,
    eta_of,
    method_options,
    support_of,
)
from ldprecover_cli.output import note, print_json
from ldprecover_cli.signals import ended_by_signals

if TYPE_CHECKING:
    from ldprecover import RoundExport
    from ldprecover_cluster import ReportDataset, Scheduler


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(recompute)


def recompute(
    file: Annotated[
        Path, typer.Argument(help="What `ldprecover export` or `merge` wrote.", metavar="FILE")
    ],
    *,
    target: Annotated[
        list[str] | None,
        typer.Option(
            help="An item known to be attacked; give it once for each. With any, it is LDPRecover*."
        ),
    ] = None,
    eta: Eta = "0.2",
    method: RecoveryMethod = "ldprecover",
    option: MethodOptions = None,
    malicious_model: MaliciousModel = "paper",
    support: SupportFile = None,
    history: Annotated[
        list[Path] | None,
        typer.Option(
            help="An exported round over the same items that is known to be clean; give it once "
            "for each.",
            metavar="FILE",
        ),
    ] = None,
    reports: Annotated[
        list[str] | None,
        typer.Option(
            help="A dataset that `ldprecover export --reports` wrote; give it once for each round "
            "of a merged export.",
            metavar="FOLDER|URL",
        ),
    ] = None,
    partial: Annotated[
        bool,
        typer.Option(
            "--partial", help="Take a dataset that lacks reports, and count those that it has."
        ),
    ] = False,
    jobs: Jobs = 1,
    scheduler: SchedulerUrl = None,
    tls_ca: TlsCa = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    output: Annotated[
        Path | None, typer.Option(help="Write the JSON to this new file.", metavar="FILE")
    ] = None,
) -> None:
    """Estimate and recover an exported round without a server, and print the columns as JSON.

    The checksum is verified first; the numbers are the server's, to the last bit.

    A method that uses the reports where they are kept has the counts alone here, unless --reports
    names the round's dataset. Reading them is work for several processes, or for a Dask cluster:
    the numbers are the same.

    Example: ldprecover recompute cities.json --eta 0.1

    Example: ldprecover recompute cities.json --method unmix --history may.json --history june.json

    Example: ldprecover recompute cities/round.json --reports cities --method fiad --jobs 2
    """
    exported = read_export(file)
    how = {
        "method": method,
        "eta": eta_of(eta),
        "malicious_model": malicious_model,
        "support": support_of(support),
        "options": method_options(option),
    }
    evidence: dict[str, Any] = {"history": [read_export(each) for each in history or []]}
    if output is not None and output.exists():
        raise UsageError(f"cannot write {output}: it is there")
    cluster = scheduler_of(scheduler, jobs, tls_ca, tls_cert, tls_key)
    if reports:
        with ended_by_signals():
            answer = _from_reports(
                exported,
                target or [],
                how,
                evidence,
                _datasets(exported, reports),
                partial,
                jobs,
                cluster,
            )
    elif partial or jobs > 1 or cluster:
        raise UsageError(
            "--partial, --jobs and --scheduler are for a round's reports: name its dataset with "
            "--reports"
        )
    else:
        answer = _columns(exported, target or [], how, evidence)
    if output is None:
        print_json(answer)
    else:
        write_export(output, answer)


def _datasets(exported: "RoundExport", folders: Sequence[str]) -> "list[ReportDataset]":
    """Return the datasets in some folders. Raises UsageError unless they are those of all rounds in
    an export.
    """
    from ldprecover import ParameterError, RoundExport
    from ldprecover_cluster import ReportDataset

    datasets = [ReportDataset.open(folder) for folder in folders]
    try:
        together = RoundExport.merge([each.export for each in datasets], called=list(folders))
    except ParameterError as error:
        raise UsageError(str(error)) from error
    if together.parameters.digest != exported.parameters.digest:
        raise UsageError(
            f"{' and '.join(folders)}: the datasets are of a round with other parameters than the "
            "export"
        )
    if _rounds(together) != _rounds(exported):
        raise UsageError(
            f"{' and '.join(folders)}: the datasets are of {_named(together)}, and the export is "
            f"of {_named(exported)}"
        )
    if (
        together.tally.n != exported.tally.n
        or (together.tally.summary != exported.tally.summary).any()
    ):
        raise UsageError(
            f"{' and '.join(folders)}: the datasets are of another moment of the round than the "
            "export, "
            f"of {together.tally.n:,} reports and not {exported.tally.n:,}; each has an export in "
            "it, round.json"
        )
    return datasets


def _rounds(export: "RoundExport") -> list[str]:
    return [each.round for each in export.merged] or [export.round]


def _named(export: "RoundExport") -> str:
    each = [f"{each.name} ({each.round})" for each in export.merged] or [
        f"{export.name} ({export.round})"
    ]
    return f"the round{'' if len(each) == 1 else 's'} {' and '.join(each)}"


def _from_reports(
    exported: "RoundExport",
    target: list[str],
    how: dict[str, Any],
    evidence: dict[str, Any],
    datasets: "Sequence[ReportDataset]",
    partial: bool,
    jobs: int,
    scheduler: "Scheduler | None",
) -> dict[str, Any]:
    from ldprecover.recovery import ReportSource
    from ldprecover_client import progress_bar
    from ldprecover_cluster import engine

    missing = sum(each.missing for each in datasets)
    if missing and not partial:
        raise UsageError(
            f"{missing:,} of the round's {exported.tally.n:,} reports are not in its dataset; "
            "with --partial all numbers are of those that are"
        )
    parts = [part for each in datasets for part in each.parts]
    n = sum(part.n for part in parts)
    with (
        progress_bar("reports of a pass") as progress,
        engine(jobs, scheduler, tell=note) as executor,
    ):

        def tell(passes: int, read: int) -> None:
            progress(read, n)

        # A checksum is anybody's to make: the numbers are those of the reports only if these give
        # the counts.
        tallies = [each.tally(executor=executor, progress=tell) for each in datasets]
        source = ReportSource.of_parts(
            exported.parameters.oracle, parts, executor=executor, progress=tell
        )
        if not missing:
            return _columns(exported, target, how, {**evidence, "reports": source})
        those = replace(exported, tally=reduce(add, tallies), merged=(), reports=None)
        answer = _columns(those, target, how, {**evidence, "reports": source})
    lacking = f"{missing:,} of the round's {exported.tally.n:,} reports are not in its dataset"
    return answer | {
        "notes": [*answer.get("notes", ()), f"{lacking}: all numbers are of the others."]
    }


def _columns(
    exported: "RoundExport", target: list[str], how: dict[str, Any], evidence: dict[str, Any]
) -> dict[str, Any]:
    from ldprecover import RecoveryRequest

    items = exported.parameters.items
    answer: dict[str, Any] = {
        "round": exported.round,
        "n": exported.tally.n,
        "items": items,
        "counts": exported.tally.counts(exported.parameters.oracle).tolist(),
    }
    if not exported.tally.n:
        return answer
    check_items(target, items)
    estimates = exported.estimates()
    request = RecoveryRequest(targets=[items.index(label) for label in target], **how)
    recovery = exported.recover(request, **evidence)
    return answer | {
        "frequencies": estimates.frequencies.tolist(),
        "standard_errors": estimates.standard_errors.tolist(),
        "method": recovery.method,
        "eta": recovery.eta,
        "targets": list(recovery.targets),
        "malicious": recovery.malicious.tolist(),
        "genuine": recovery.genuine.tolist(),
        "recovered": recovery.recovered.tolist(),
        "notes": list(recovery.notes),
        "conclusions": None
        if recovery.conclusions is None
        else recovery.conclusions.to_dict(items),
    }
