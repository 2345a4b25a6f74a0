"""Counting and simulating against limits in C, on one thread.

Contenders of a group run in turn, forwards and then backwards (ABBA), so that a drift of the
machine's speed cancels. A time is the median over the rounds; a ratio is the median of the ratios
within each round. Counts are compared before anything is timed.
"""

import datetime
import math
import os
import platform
import re
import statistics
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
import typer
from bench.harness import Work, in_turn, median_ratio, seconds
from bench.kernels_c import FLAGS, CLimits

from ldprecover import GRR, OLH, OUE
from ldprecover.counting import numpy_kernels
from ldprecover_experiments.simulation.tables import TextTable

D, EPSILON, G = 490, 0.5, 3
USERS = 1_000_000
TRANSFORMED = 1 << 17
SIZES = {"grr": 200_000, "oue": 200_000, "olh": 40_960}

NOTES = (
    f"A ratio is our time over that of C (gcc {' '.join(FLAGS)}).",
    "Ours starts from packed reports, C from columns or rows laid out beforehand.",
    "numba compiles for this machine's processor, C for any since x86-64-v3 (AVX2).",
    "Simulating is perturbing into packed reports with a seeded generator.",
)


Contenders = Mapping[str, tuple[Work, int]]
"""What can be timed, by name, and how many units (reports, tests, users) a call does."""


class Times:
    """Nanoseconds a unit, of each contender in each round; short work is repeated to 20 ms."""

    def __init__(self, contenders: Contenders, rounds: int) -> None:
        works = {}
        for name, (work, _) in contenders.items():
            work()
            works[name] = partial(seconds, work, repeats=math.ceil(0.02 / seconds(work)))
        self._times = {
            name: [1e9 * took / contenders[name][1] for took in times]
            for name, times in in_turn(works, rounds).items()
        }

    def median(self, name: str) -> float:
        return statistics.median(self._times[name])

    def ratio(self, slower: str, faster: str) -> float:
        """Return the median over the rounds of the first's time over the second's."""
        return median_ratio(self._times[slower], self._times[faster])


class Bench:
    """All comparisons, as far as what they need is installed."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds
        self.rows: list[tuple[str, ...]] = []
        self.notes: list[str] = []
        self.modules = {"numpy": numpy_kernels}
        with self._installed("numba", "`pip install 'ldprecover[fast]'` installs it"):
            from ldprecover.counting import numba_kernels

            self.modules["numba"] = numba_kernels
        self.c: CLimits | None = None
        with self._installed("C", "it gives limits"):
            self.c = CLimits()
        self.rng = np.random.default_rng(1)

    @contextmanager
    def _installed(self, name: str, hint: str) -> Iterator[None]:
        """Note that `name` is skipped where it cannot be had."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield
        except (ImportError, RuntimeError) as error:
            self.notes.append(f"{name} is skipped: {error}; {hint}")

    def run(self) -> None:
        self.olh()
        self.oue()
        self.grr()
        self.transform()
        self.simulate()

    def olh(self) -> None:
        oracle, n = OLH(EPSILON, D, G), SIZES["olh"]
        reports = oracle.perturb(self._items(n), self.rng)
        self._compare(
            "OLH, per (report, item) test",
            lambda m: m.olh_counts(reports["seed"], reports["bucket"], D, G),
            n * D,
            {"numpy": 7.0, "numba": 1.0},
            {name: self.c.olh(oracle, reports, name) for name in ("olh_multiply", "olh_range")}
            if self.c
            else {},
        )

    def oue(self) -> None:
        oracle, n = OUE(EPSILON, D), SIZES["oue"]
        rows = oracle.perturb(self._items(n), self.rng)
        self._compare(
            "OUE, per report",
            lambda m: m.oue_counts(rows, D),
            n,
            {"numba": 1.3},
            {"C": self.c.oue(oracle, rows)} if self.c else {},
        )

    def grr(self) -> None:
        n = SIZES["grr"]
        reports = GRR(EPSILON, D).perturb(self._items(n), self.rng)
        self._compare("GRR, per report", lambda m: m.grr_counts(reports, D), n)

    def transform(self) -> None:
        values = self.rng.integers(0, 1000, TRANSFORMED)
        self._compare(
            "Walsh-Hadamard transform, per number",
            lambda m: m.walsh_hadamard(values),
            TRANSFORMED,
            {"numpy": 4.0, "numba": 1.3},
            {"C": self.c.walsh_hadamard(values)} if self.c else {},
        )

    def simulate(self) -> None:
        oracle, items = OUE(EPSILON, D), self._items(USERS)
        times = Times({"ours": (lambda: oracle.perturb(items, self.rng), USERS)}, self.rounds)
        self._add(f"simulate {USERS:,} OUE users, per user", times, "ours")

    def _items(self, n: int) -> np.ndarray:
        return self.rng.integers(0, D, n)

    def _compare(
        self,
        unit: str,
        count: Callable[[Any], np.ndarray],
        units: int,
        goals: Mapping[str, float] = MappingProxyType({}),
        limits: Mapping[str, Work] = MappingProxyType({}),
    ) -> None:
        """Add a row for each module: the time of `count` beside that of the fastest limit.

        Raises AssertionError unless modules and limits count the same.
        """
        works = {name: partial(count, module) for name, module in self.modules.items()} | limits
        counts = [work() for work in works.values()]
        if not all(np.array_equal(counts[0], other) for other in counts[1:]):
            raise AssertionError(f"{', '.join(works)} do not count the same")
        times = Times({name: (work, units) for name, work in works.items()}, self.rounds)
        for name in self.modules:
            self._add(f"{unit}, {name}", times, name, goals.get(name), limits)

    def _add(
        self,
        description: str,
        times: Times,
        name: str,
        goal: float | None = None,
        limits: Iterable[str] = (),
    ) -> None:
        """Add a row: `name` beside the fastest limit, and whether it is within the goal."""
        against = ratio = limit = reached = ""
        if goal is not None:
            against, limit, reached = "not installed", f"<= {goal:g}x", "not measured"
            if limits := list(limits):
                best = min(limits, key=times.median)
                times_as_long = times.ratio(name, best)
                against = f"{best} {times.median(best):.3g} ns"
                ratio, reached = f"{times_as_long:.3g}x", "yes" if times_as_long <= goal else "no"
        self.rows.append(
            (description, f"{times.median(name):.3g} ns", against, ratio, limit, reached)
        )


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
    """Count and simulate against limits in C; all runs `rounds` times."""
    print(
        f"Kernels at d = {D}, epsilon = {EPSILON}, one thread, medians of {rounds}\n{machine()}\n"
    )
    bench = Bench(rounds)
    bench.run()
    table = TextTable(("what", "ours", "against", "ratio", "goal", "reached"), bench.rows)
    print(table.markdown(), "", *(f"- {note}" for note in (*bench.notes, *NOTES)), sep="\n")


if __name__ == "__main__":
    typer.run(main)
