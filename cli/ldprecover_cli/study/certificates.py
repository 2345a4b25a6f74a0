"""`reproduce certificates`: the evaluation of certificates."""

from typing import TYPE_CHECKING

from ldprecover_cli.errors import UsageError
from ldprecover_cli.output import note
from ldprecover_cli.study.output import RunOptions, check_packages, folder, show, store_all

if TYPE_CHECKING:
    from ldprecover_experiments.tables import Table


def evaluate(options: RunOptions, share: float) -> None:
    """Run what is missing of a share of the evaluation, and write its rows, tables and figure."""
    check_packages()
    from ldprecover_experiments.certificate_evaluation import PARTS
    from ldprecover_experiments.detection import rates
    from ldprecover_experiments.figures import draw_detection
    from ldprecover_experiments.run_file import RowFile, replaced
    from ldprecover_experiments.runs import run_tasks

    names = options.selection(("part",)).get("part", tuple(PARTS))
    if unknown := set(names) - PARTS.keys():
        raise UsageError(f"there is no part {unknown.pop()!r}; there are {', '.join(PARTS)}")
    out, tables = folder(options), list["Table"]()
    for name in names:
        part = PARTS[name]
        file = RowFile(out / f"{name}.csv", part.columns, part.key)
        keys = part.tasks(options.seed, options.trials, share)
        missing = [key for key in keys if file.of(key) is None]
        jobs = max(1, min(options.jobs, len(missing)))
        running = run_tasks(
            part.run,
            missing,
            jobs,
            lambda: note("Finishing the cells under way."),
            scheduler=options.scheduler,
            report_wait=note,
        )
        store_all(running, len(missing), file.add)
        rows = [row for key in keys if (row := file.of(key)) is not None]
        tables += part.tables(rows)
        if name == "detection":
            draw_detection(rates(rows), out / "detection")
    markdown = (f"{table.title}\n\n{table.markdown()}\n" for table in tables)
    replaced(out / "certificates.md", "\n".join(markdown))
    show(tables)
