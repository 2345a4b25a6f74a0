"""`study run`: a study that a TOML file describes."""

import sys
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from ldprecover.sentences import counted
from ldprecover_cli.output import note
from ldprecover_cli.study.output import Jobs, Output, run_into, show


def run(
    file: Annotated[
        Path,
        Argument(
            help="TOML file that describes the study, or one that is shipped: clean, crafted, "
            "forms, framing or unmix; or adversary, random attacks on the best estimate; or "
            "series, years of people who answer in rotation.",
            metavar="FILE",
        ),
    ],
    *,
    output: Output = Path("reproduction"),
    jobs: Jobs = None,
    rounds: Annotated[int, Option(min=1, help="Rounds of the adversary, or years.")] = 60,
    seed: Annotated[int, Option(min=0, help="Seed of the adversary, or series.")] = 0,
) -> None:
    """Run a study of your own: attacks, methods, protocols, data and parameters in a TOML file.

    Attacks and methods may be functions: "module:name" is one of a module beside the file.

    The folder gets cells.jsonl, with a line for each cell, and a JSON file of the study's name.
    Finished cells are not run again: after Ctrl-C the same command continues.

    Example: ldprecover study run study.toml --jobs 2

    The adversary prints the worst round for each of its goals, series the mean of each measure.
    They keep no files.

    Example: ldprecover study run framing --output framing

    Example: ldprecover study run adversary --rounds 200 --seed 1

    Example: ldprecover study run series --rounds 100
    """
    from ldprecover_experiments import Study

    if str(file) in ("adversary", "series"):
        from ldprecover_client import progress_bar
        from ldprecover_experiments.studies.adversary import adversary
        from ldprecover_experiments.studies.series import series

        with progress_bar("rounds" if str(file) == "adversary" else "years") as on_progress:
            play = adversary if str(file) == "adversary" else series
            table = play(seed, rounds, on_progress)
        show([table])
        return

    sys.path.append(str(file.resolve().parent))  # for attacks and methods by module:name
    study = Study.load(file)
    note(study.cost)
    with run_into(output, [study], jobs) as (results,):
        (output / f"{file.stem}.json").write_text(f"{results.to_json()}\n", encoding="utf-8")
        show(results.tables)
        for (method, reason), number in results.refusals.items():
            note(f"{method}: {reason} ({counted(number, 'cell')})")
