"""`export` and `recompute`: a round as a file, and what its numbers say without the server."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ldprecover_cli.failures import UsageError, check_items
from ldprecover_cli.options import (
    DEFAULT_URL,
    Eta,
    Key,
    MaliciousModel,
    MethodOptions,
    RecoveryMethod,
    RoundArgument,
    SupportFile,
    Url,
    connected,
    eta_of,
    method_options,
    support_of,
)
from ldprecover_cli.output import counted, note, print_json
from ldprecover_cli.signals import ended_by_signals

if TYPE_CHECKING:
    from ldprecover import RoundExport

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(export)
    app.command()(recompute)


def export(
    round: RoundArgument = "current",
    *,
    output: Annotated[Path | None, typer.Option(help="Write it to this new file.", metavar="FILE")] = None,
    reports: Annotated[
        str | None,
        typer.Option(
            help="Write it with all reports, read from the database, to this new folder or fsspec URL.", metavar="DIR"
        ),
    ] = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="With --reports, also of a round that does not keep all its reports.")
    ] = False,
    database_url: Annotated[
        str | None,
        typer.Option(
            envvar="LDPRECOVER_DATABASE_URL", help="With --reports, the server's database; the same default as `serve`."
        ),
    ] = None,
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Write a round's parameters, tally and checksum as one JSON file.

    With --reports as the file round.json of a new folder that has the reports too. That is done on the machine
    that has the database, and the server may be running. The same command goes on with one that did not end.

    Example: ldprecover export cities --output cities.json

    Example: ldprecover export cities --reports cities --database-url sqlite:///ldprecover.db
    """
    if reports is not None:
        if output is not None:
            raise UsageError("--reports writes a folder and --output a file: give one of them")
        _export_dataset(round, reports, partial, database_url)
        return
    if partial:
        raise UsageError("--partial goes with --reports")
    with connected(url, key, scope="analyst", round=round) as client:
        answer = client.export(round)
    if output is None:
        print_json(answer)
        return
    import json

    try:
        with output.open("x", encoding="utf-8") as file:
            try:
                json.dump(answer, file, ensure_ascii=False, allow_nan=False)
                file.write("\n")
                file.flush()
            except BaseException:  # half an export would stand in the way of the next try
                output.unlink()
                raise
    except OSError as error:
        raise UsageError(f"cannot write {output}: {error.strerror}") from error
    note(f"{answer['n']:,} reports of round {answer['name']} are in {output}; `ldprecover recompute` reads it")


def _export_dataset(round: str, folder: str, partial: bool, database_url: str | None) -> None:
    from ldprecover_cli.serving import export_dataset
    from ldprecover_client import progress_bar

    try:
        with ended_by_signals(), progress_bar("reports", first="reading") as step:
            dataset = export_dataset(round, folder, partial=partial, step=step, database_url=database_url)
    except (KeyboardInterrupt, SystemExit) as stopped:
        stopped.add_note("the parts that are finished stay; the same command goes on from there")
        raise
    missing = f"; {counted(dataset.missing, 'report')} of the round are missing" if dataset.missing else ""
    note(f"{counted(dataset.n, 'report')} in {counted(len(dataset.parts), 'part')} are in {folder}{missing}")


def recompute(
    file: Annotated[Path, typer.Argument(help="What `ldprecover export` wrote.", metavar="FILE")],
    *,
    target: Annotated[
        list[str] | None,
        typer.Option(help="An item known to be attacked; give it once for each. With any, it is LDPRecover*."),
    ] = None,
    eta: Eta = "0.2",
    method: RecoveryMethod = "ldprecover",
    option: MethodOptions = None,
    malicious_model: MaliciousModel = "paper",
    support: SupportFile = None,
    history: Annotated[
        list[Path] | None,
        typer.Option(
            help="An exported round over the same items that is known to be clean; give it once for each.",
            metavar="FILE",
        ),
    ] = None,
) -> None:
    """Estimate and recover an exported round without a server, and print the columns as JSON.

    The checksum is verified first; the numbers are the server's, to the last bit.

    A method that uses the reports where they are kept has the counts alone here.

    Example: ldprecover recompute cities.json --eta 0.1

    Example: ldprecover recompute cities.json --method unmix --history may.json --history june.json
    """
    exported = _read(file)
    how = {
        "method": method,
        "eta": eta_of(eta),
        "malicious_model": malicious_model,
        "support": support_of(support),
        "options": method_options(option),
        "history": [_read(each) for each in history or []],
    }
    print_json(_columns(exported, target or [], how))


def _read(file: Path) -> "RoundExport":
    from ldprecover import ParameterError, RoundExport

    try:
        return RoundExport.from_json(file.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
    except ParameterError as error:
        raise UsageError(f"{file}: {error}") from error


def _columns(exported: "RoundExport", target: list[str], how: dict[str, Any]) -> dict[str, Any]:
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
    recovery = exported.recover(targets=[items.index(label) for label in target], **how)
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
        "conclusions": None if recovery.conclusions is None else recovery.conclusions.to_dict(items),
    }
