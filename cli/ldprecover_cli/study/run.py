"""`study run`: a study that a TOML file describes."""

import os
import sys
from functools import partial
from pathlib import Path
from typing import Annotated

from typer import Argument, Exit, Option

from ldprecover.sentences import counted
from ldprecover_cli.errors import UsageError, close_to, file_errors
from ldprecover_cli.output import console, note, plain
from ldprecover_cli.signals import end_on_signals
from ldprecover_cli.study.output import (
    Jobs,
    Output,
    Wide,
    number_of,
    run_cells,
    run_into,
    show,
)

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
    rounds: Annotated[
        int | None, Option(min=1, help="Rounds of the adversary, or years; 60 when absent.")
    ] = None,
    seed: Annotated[
        int | None, Option(min=0, help="Seed of the adversary, series, or sample; 0 when absent.")
    ] = None,
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

    The folder gets cells.jsonl and, of the file's name, JSON with a record of what made it, CSV
    with means, LaTeX tables, and figures as PDF and SVG. After Ctrl-C the same command continues.

    --verify writes nothing, names each number that differs, and then exits with 1.

    adversary and series write JSON, CSV and a LaTeX table of means and largest values, and do not
    continue after Ctrl-C.

    Example: ldprecover study run study.toml --jobs 2

    Example: ldprecover study run framing --output framing

    Example: ldprecover study run adversary --rounds 200 --seed 1

    Example: ldprecover study run series --rounds 100
    """
    from ldprecover_experiments import Study
    from ldprecover_experiments.studies.plays import PLAYS, play_rounds
    from ldprecover_experiments.studies.study import PRESETS

    sys.path.append(str(file.resolve().parent))  # for attacks and methods by module:name
    if verify is not None:
        if rounds is not None:
            raise UsageError("--rounds does not go with --verify, which plays those of the results")
        _verify(file, verify / f"{file.stem}.json", seed or 0, jobs, every=every)
        return
    if every:
        raise UsageError("--all needs --verify")
    if str(file) in PLAYS:
        if wide:
            raise UsageError(f"--wide is for figures, which {file} does not have")
        play = partial(play_rounds, file.name, seed or 0, rounds or 60, number_of(jobs))
        with run_into(output, play) as played:
            with file_errors("write to", output):
                played.write(output / file)
            show([played.table])
        return
    if str(file) not in PRESETS and not os.path.exists(file):  # noqa: PTH110  long names
        near = close_to(str(file), (*PRESETS, *PLAYS)) or "`--help` names those that are shipped"
        raise UsageError(f"there is no file {file}; {near}")
    for option, value, key in (("--seed", seed, "seed"), ("--rounds", rounds, "trials")):
        if value is not None:
            raise UsageError(f"{option} is for adversary and series: this study has the key {key}")
    study = Study.load(file)
    note(study.cost)
    with run_into(output, partial(run_cells, output, [study], jobs)) as (results,):
        with file_errors("write to", output):
            results.write(output / file.stem, wide=wide)
        show(results.tables)
        for (method, reason), number in results.refusals.items():
            why = reason.removeprefix(f"{method}: ")
            note(f"{method}: {why} ({counted(number, 'cell')})")


def _verify(study_file: Path, file: Path, seed: int, jobs: int | None, *, every: bool) -> None:
    """Print the numbers of the file that differ now, and exit with 1 if there are some."""
    from ldprecover_client import progress_bar
    from ldprecover_experiments import Results, Study
    from ldprecover_experiments.studies.plays import PLAYED, PLAYS
    from ldprecover_experiments.studies.records import parsed
    from ldprecover_experiments.studies.verification import number_differences, record_differences

    with file_errors("read", file):
        text = file.read_bytes()
    if str(study_file) in PLAYS:
        played = parsed(PLAYED, text)
        again, cells = partial(played.differences, number_of(jobs)), len(played.rounds)
    else:
        study, results = Study.load(study_file), Results.from_json(text)
        note(study.cost)
        for difference in record_differences(study, results):
            note(difference)
        again = partial(number_differences, study, results, number_of(jobs))
        cells = len(study.cells)
    number = cells if every else min(_SAMPLE, cells)
    with end_on_signals(), progress_bar("rounds") as on_progress:
        differing = list(again(number, seed, on_progress))
    out = console()
    for difference in differing:
        out.print(plain(difference), soft_wrap=True)
    summary = counted(len(differing), "difference")
    note(f"Ran {counted(number, 'cell')} again: {summary} above 1e-6.")
    if differing:
        raise Exit(1)
