"""`export` and `recompute`: a round as a file, and what its numbers say without the server."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ldprecover_cli.export_files import read_export, write_export
from ldprecover_cli.failures import check_items
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
from ldprecover_cli.output import note, print_json

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
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Write a round's parameters, tally and checksum as one JSON file.

    Example: ldprecover export cities --output cities.json
    """
    with connected(url, key, scope="analyst", round=round) as client:
        answer = client.export(round)
    if output is None:
        print_json(answer)
        return
    write_export(output, answer)
    note(f"{answer['n']:,} reports of round {answer['name']} are in {output}; `ldprecover recompute` reads it")


def recompute(
    file: Annotated[Path, typer.Argument(help="What `ldprecover export` or `merge` wrote.", metavar="FILE")],
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
    exported = read_export(file)
    how = {
        "method": method,
        "eta": eta_of(eta),
        "malicious_model": malicious_model,
        "support": support_of(support),
        "options": method_options(option),
        "history": [read_export(each) for each in history or []],
    }
    print_json(_columns(exported, target or [], how))


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
