"""Verification of a study's results: some of its cells are run again and compared."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from math import isclose, nan
from random import Random

from ldprecover_experiments.studies.records import environment
from ldprecover_experiments.studies.results import Results
from ldprecover_experiments.studies.rows import CellRow
from ldprecover_experiments.studies.runs import run_tasks, tasks_of
from ldprecover_experiments.studies.study import Study


def record_differences(study: Study, results: Results) -> Iterator[str]:
    """Yield a sentence for each environment, key and hash that is another than the results'."""
    for each in {row.environment for row in results.cells} - {environment()}:
        yield f"some cells were run by {each}; this is {environment()}"
    for part, current in study.record.items():
        earlier = results.record.get(part, {})
        for key in sorted({key for key, _ in current.items() ^ earlier.items()}):
            yield f"{part}: {key} was {earlier.get(key)}, and is {current.get(key)}"


def number_differences(
    study: Study,
    results: Results,
    jobs: int,
    cells: int,
    seed: int,
    progress: Callable[[int, int], None],
) -> Iterator[str]:
    """Run a random sample of the cells; yield the differences. Raises as `Study.run` does."""
    rows = Random(seed).sample(study.rows, cells)
    earlier = {row.cell.title: _numbers(row) for row in results.cells}
    tasks = tasks_of(rows, study.users_by_data, study.methods)
    done = 0
    for finished in run_tasks(tasks, min(jobs, len(tasks)), lambda: None):
        done += len(finished)
        progress(done, cells)
        for row in finished:
            before, title = earlier.get(row.cell.title), row.cell.title
            if before is None:
                yield f"{title}: the results have no such cell"
            else:
                yield from differences(title, before, _numbers(row))


def differences(
    title: str, before: Mapping[str, float], after: Mapping[str, float]
) -> Iterator[str]:
    """Yield a sentence for each number that differs by 1e-6 relative; a missing one is NaN."""
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name, nan), after.get(name, nan)
        # Rounding is all that remains of a gain that is 0.
        if not isclose(old, new, rel_tol=1e-6, abs_tol=1e-15):
            yield f"{title}: {name} was {old}, and is {new}"


def _numbers(row: CellRow) -> dict[str, float]:
    """Return the numbers of a row that are not NaN, but for times."""
    return {
        f"{name} of {outcome.method}": value
        for outcome in row.outcomes
        for name, value in asdict(outcome).items()
        if name != "seconds" and isinstance(value, float) and value == value
    }
