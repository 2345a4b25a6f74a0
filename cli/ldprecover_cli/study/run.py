"""`study run`: a study that a TOML file describes."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option

from ldprecover.sentences import counted
from ldprecover_cli.errors import file_errors
from ldprecover_cli.output import console, note, plain
from ldprecover_cli.signals import end_on_signals
from ldprecover_cli.study.output import Jobs, Output, Wide, run_into, show

if TYPE_CHECKING:
    from ldprecover_experiments import Study

_SAMPLE = 20
"""Cells that --verify runs again."""


def run(
    file: Annotated[
        Path,
        Argument(
            help="TOML file of the study, or one that is shipped: clean, "
            "comparison, crafted, forms, framing or unmix; or adversary, random attacks on the "
            "best estimate; or series, years of people who answer in rotation.",
            metavar="FILE",
        ),
    ],
    *,
    output: Output = Path("reproduction"),
    jobs: Jobs = None,
    rounds: Annotated[int, Option(min=1, help="Rounds of the adversary, or years.")] = 60,
    seed: Annotated[int, Option(min=0, help="Seed of the adversary, series, or sample.")] = 0,
    wide: Wide = False,
    verify: Annotated[
        Path | None,
        Option(
            help="Folder of results: run 20 random cells again, and compare to 1e-6.",
            metavar="FOLDER",
        ),
    ] = None,
    every: Annotated[bool, Option("--all", help="Verify all cells.")] = False,
) -> None:
    """Run a study of your own: attacks, methods, protocols, data and parameters in a TOML file.

    Attacks and methods may be functions: "module:name" is one of a module beside the file.

    The folder gets cells.jsonl and, of the study's name, JSON with a record of what made it, CSV
    with means, LaTeX tables, and figures as PDF and SVG. After Ctrl-C the same command continues.

    --verify writes nothing, names each number that differs, and then exits with 1.

    The adversary prints the worst round for each of its goals, series the mean of each measure;
    both keep no files.

    Example: ldprecover study run study.toml --jobs 2

    Example: ldprecover study run framing --output framing

    Example: ldprecover study run adversary --rounds 200 --seed 1

    Example: ldprecover study run series --rounds 100
    """
    from ldprecover_experiments import Study

    if str(file) in ("adversary", "series"):
        from ldprecover_client import progress_bar
        from ldprecover_experiments.studies.adversary import adversary
        from ldprecover_experiments.studies.series import series

        play = adversary if str(file) == "adversary" else series
        with progress_bar("rounds") as on_progress:
            table = play(seed, rounds, on_progress)
        show([table])
        return

    sys.path.append(str(file.resolve().parent))  # for attacks and methods by module:name
    study = Study.load(file)
    note(study.cost)
    if verify is not None:
        _verify(study, verify / f"{file.stem}.json", seed, jobs, every=every)
        return
    with run_into(output, [study], jobs) as (results,):
        results.write(output / file.stem, wide=wide)
        show(results.tables)
        for (method, reason), number in results.refusals.items():
            note(f"{method}: {reason} ({counted(number, 'cell')})")


def _verify(study: "Study", file: Path, seed: int, jobs: int | None, *, every: bool) -> None:
    """Print the numbers of the file that differ now, and exit with 1 if there are some."""
    from ldprecover_client import progress_bar
    from ldprecover_experiments import Results
    from ldprecover_experiments.studies.verification import number_differences, record_differences

    with file_errors("read", file):
        results = Results.from_json(file.read_bytes())
    for difference in record_differences(study, results):
        note(difference)
    number = len(study.cells) if every else min(_SAMPLE, len(study.cells))
    with end_on_signals(), progress_bar("cells") as on_progress:
        numbers = number_differences(
            study, results, number, seed, jobs or os.cpu_count() or 1, on_progress
        )
        differing = list(numbers)
    out = console()
    for difference in differing:
        out.print(plain(difference), soft_wrap=True)
    summary = counted(len(differing), "difference")
    note(f"Ran {counted(number, 'cell')} again: {summary} above 1e-6.")
    if differing:
        raise Exit(1)
