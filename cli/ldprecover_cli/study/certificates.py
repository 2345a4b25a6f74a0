"""`study certificates`: the evaluation of certificates."""

from pathlib import Path
from typing import TYPE_CHECKING

from ldprecover_cli.engines import SchedulerUrl, TlsCa, TlsCert, TlsKey
from ldprecover_cli.options import Seed
from ldprecover_cli.output import note
from ldprecover_cli.study.output import (
    Jobs,
    Only,
    Out,
    Share,
    Trials,
    check_packages,
    check_parts,
    folder,
    running,
    selection,
    show,
    store_all,
    write_markdown,
)

if TYPE_CHECKING:
    from ldprecover_experiments.tables import Table


def certificates(
    *,
    only: Only = None,
    share: Share = 1.0,
    trials: Trials = 10,
    seed: Seed = 0,
    out: Out = Path("reproduction"),
    jobs: Jobs = None,
    scheduler: SchedulerUrl = None,
    tls_ca: TlsCa = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
) -> None:
    """Play 1,000 rounds of every kind, in which the certified intervals must hold the truth.

    The tables are in certificates.md; --only takes part. After Ctrl-C the same command continues.

    Example: ldprecover study certificates --only part=rounds --share 0.1
    """
    check_packages()
    from ldprecover_experiments.certificate_evaluation import PARTS
    from ldprecover_experiments.detection import rates
    from ldprecover_experiments.figures import draw_detection
    from ldprecover_experiments.run_file import RowFile
    from ldprecover_experiments.runs import run_tasks

    with running(out, jobs, scheduler, tls_ca, tls_cert, tls_key) as runner:
        names = selection(only, ("part",)).get("part", tuple(PARTS))
        check_parts(names, PARTS)
        folder(runner)
        tables = list["Table"]()
        for name in names:
            part = PARTS[name]
            file = RowFile(out / f"{name}.csv", part.columns, part.key)
            keys = part.tasks(seed, trials, share)
            missing = [key for key in keys if file.of(key) is None]
            processes = max(1, min(runner.jobs, len(missing)))
            results = run_tasks(
                part.run,
                missing,
                processes,
                lambda: note("Finishing the cells under way."),
                scheduler=runner.scheduler,
                report_wait=note,
            )
            store_all(results, len(missing), file.add)
            rows = [row for key in keys if (row := file.of(key)) is not None]
            tables += part.tables(rows)
            if name == "detection":
                draw_detection(rates(rows), out / "detection")
        write_markdown(out / "certificates.md", tables)
        show(tables)
