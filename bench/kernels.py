"""Counting by numpy and by numba, and simulating, on one thread.

Both count in turn, forwards and then backwards (ABBA), so that a drift of the machine's speed
cancels. A time is the median over the rounds. Counts are compared before anything is timed.
"""

import datetime
import math
import os
import platform
import re
import statistics
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Annotated

import numpy as np
import typer
from bench.harness import Work, in_turn, seconds

from ldprecover import GRR, OLH, OUE
from ldprecover.counting import numpy_kernels
from ldprecover_experiments.simulation.tables import TextTable

D, EPSILON, G = 490, 0.5, 3
USERS = 1_000_000
SIZES = {"grr": 200_000, "oue": 200_000, "olh": 40_960}

Count = Callable[[ModuleType], np.ndarray]
"""Counts with the kernels of a module."""


def counts(rng: np.random.Generator) -> Iterator[tuple[str, int, Count]]:
    """Yield what is counted, from packed reports, with the number of units and the function."""
    olh = OLH(EPSILON, D, G).perturb(rng.integers(0, D, SIZES["olh"]), rng)
    yield (
        "OLH, per (report, item) test",
        D * len(olh),
        lambda kernels: kernels.olh_counts(olh["seed"], olh["bucket"], D, G),
    )
    oue = OUE(EPSILON, D).perturb(rng.integers(0, D, SIZES["oue"]), rng)
    yield "OUE, per report", len(oue), lambda kernels: kernels.oue_counts(oue, D)
    grr = GRR(EPSILON, D).perturb(rng.integers(0, D, SIZES["grr"]), rng)
    yield "GRR, per report", len(grr), lambda kernels: kernels.grr_counts(grr, D)


def nanoseconds(works: Mapping[str, Work], units: int, rounds: int) -> dict[str, str]:
    """Return the time of each work for one unit; short work is repeated to 20 ms."""
    repeated = {}
    for name, work in works.items():
        work()
        repeated[name] = partial(seconds, work, repeats=math.ceil(0.02 / seconds(work)))
    times = in_turn(repeated, rounds)
    return {name: f"{1e9 * statistics.median(each) / units:.3g} ns" for name, each in times.items()}


def machine() -> str:
    """Return a line on where this ran."""
    info = Path("/proc/cpuinfo")
    model = re.search(r"^model name\s*: (.*)", info.read_text(), re.M) if info.exists() else None
    return (
        f"{datetime.datetime.now(tz=datetime.UTC):%Y-%m-%d}, "
        f"{model[1] if model else platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, numpy {np.__version__}"
    )


def main(rounds: Annotated[int, typer.Option(min=5)] = 7) -> None:
    """Count and simulate; all runs `rounds` times."""
    print(
        f"Kernels at d = {D}, epsilon = {EPSILON}, one thread, medians of {rounds}\n{machine()}\n"
    )
    modules = {"numpy": numpy_kernels}
    try:
        from ldprecover.counting import numba_kernels

        modules["numba"] = numba_kernels
    except ImportError:
        print("numba is skipped: `pip install 'ldprecover[fast]'` installs it\n")
    rng, rows = np.random.default_rng(1), []
    for title, units, count in counts(rng):
        works = {name: partial(count, module) for name, module in modules.items()}
        first, *others = (work() for work in works.values())
        if not all(np.array_equal(first, other) for other in others):
            raise AssertionError(f"{', '.join(works)} do not count the same")
        times = nanoseconds(works, units, rounds)
        rows.append((title, times["numpy"], times.get("numba", "")))
    oracle, items = OUE(EPSILON, D), rng.integers(0, D, USERS)
    times = nanoseconds({"numpy": lambda: oracle.perturb(items, rng)}, USERS, rounds)
    rows.append((f"simulate {USERS:,} OUE users, per user", times["numpy"], ""))
    print(TextTable(("kernel", "numpy", "numba"), rows).markdown())


if __name__ == "__main__":
    typer.run(main)
