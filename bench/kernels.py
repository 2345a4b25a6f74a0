"""Counting and simulating against limits in C and other libraries, on one thread.

Contenders of a group run in turn, forwards and then backwards (ABBA), so that a drift of the
machine's speed cancels. A time is the median over the rounds; a ratio is the median of the ratios
within each round. Counts are compared before anything is timed.
"""

import argparse
import datetime
import math
import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from bench.kernels_c import FLAGS, CLimits
from bench.kernels_peers import LOADERS, Peer

from ldprecover import GRR, OLH, OUE
from ldprecover.counting import numpy_kernels, packed_lines

D, EPSILON, G = 490, 0.5, 3
USERS = 1_000_000
TRANSFORMED = 1 << 17
LOOKED_AT = 24  # items, as FIAD has them
SIZES = {"grr": 200_000, "oue": 200_000, "olh": 40_960}
PEER_USERS = {"grr": 200_000, "oue": 3000, "olh": 150, "simulate": 500}

NOTES = (
    (
        f"Against C (gcc {' '.join(FLAGS)}) a ratio is our time over C's; against a peer, the "
        "peer's "
        "over ours."
    ),
    (
        "Ours starts from packed reports, C from columns or rows laid out beforehand, a peer from "
        "a "
        "list of its reports."
    ),
    "The peer is the fastest of those installed.",
    "numba compiles for this machine's processor, C for any since x86-64-v3 (AVX2).",
    "Simulating is perturbing into packed reports with a seeded generator; peers pack with numpy.",
)

Work = Callable[[], object]


@dataclass(frozen=True)
class Contender:
    """Something that can be timed, and how many units (reports, tests, users) a call does."""

    name: str
    work: Work
    units: int


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    description: str
    ours: str
    against: str
    ratio: str
    goal: str
    reached: str


class Times:
    """Nanoseconds a unit, of each contender in each round; short work is repeated to 20 ms."""

    def __init__(self, contenders: list[Contender], rounds: int) -> None:
        self._times: dict[str, list[float]] = {contender.name: [] for contender in contenders}
        for contender in contenders:
            contender.work()
        repeats = {
            contender.name: math.ceil(0.02 / _seconds(contender.work, 1))
            for contender in contenders
        }
        for i in range(rounds):
            for contender in contenders if i % 2 == 0 else contenders[::-1]:
                seconds = _seconds(contender.work, repeats[contender.name])
                self._times[contender.name].append(1e9 * seconds / contender.units)

    def median(self, name: str) -> float:
        return statistics.median(self._times[name])

    def ratio(self, slower: str, faster: str) -> float:
        """Return the median over the rounds of the first's time over the second's."""
        pairs = zip(self._times[slower], self._times[faster], strict=True)
        return statistics.median(a / b for a, b in pairs)

    def fastest(self, names: list[str]) -> str:
        return min(names, key=self.median)


def _seconds(work: Work, repeats: int) -> float:
    """Return the mean time of a call."""
    began = time.perf_counter()
    for _ in range(repeats):
        work()
    return (time.perf_counter() - began) / repeats


class Bench:
    """All comparisons, as far as what they need is installed."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds
        self.rows: list[Row] = []
        self.notes: list[str] = []
        self.modules = {"numpy": numpy_kernels}
        try:
            from ldprecover.counting import numba_kernels

            self.modules["numba"] = numba_kernels
        except ImportError as error:
            self.notes.append(
                f"numba is skipped: {error}; `pip install 'ldprecover[fast]'` installs it"
            )
        self.c: CLimits | None = None
        try:
            self.c = CLimits()
        except RuntimeError as error:
            self.notes.append(f"C is skipped: {error}")
        self.peers: list[Peer] = []
        for name, load in LOADERS.items():
            try:
                self.peers.append(load(D, EPSILON))
            except ImportError as error:
                self.notes.append(f"{name} is skipped: {error}; `make bench` installs it")
        self.rng = np.random.default_rng(1)

    def run(self) -> None:
        self.olh()
        self.oue()
        self.grr()
        self.reading()
        self.transform()
        self.simulate()

    def olh(self) -> None:
        oracle, n = OLH(EPSILON, D, G), SIZES["olh"]
        reports = oracle.perturb(self._items(n), self.rng)
        contenders = [
            Contender(
                name, lambda m=m: m.olh_counts(reports["seed"], reports["bucket"], D, G), n * D
            )
            for name, m in self.modules.items()
        ]
        limits = ["olh_multiply", "olh_range"] if self.c else []
        contenders += [Contender(name, self.c.olh(oracle, reports, name), n * D) for name in limits]
        peers = self._peers("olh", D)
        times = self._time(contenders, peers)
        unit = "OLH, per (report, item) test"
        if self.c:
            c = times.fastest(limits)
            for name, limit in (("numpy", 7.0), ("numba", 1.0)):
                if name in self.modules:
                    ratio, own = times.ratio(name, c), times.median(name)
                    goal = "<= 1.6 ns or <= 7x" if name == "numpy" else "<= 1x"
                    reached = ratio <= limit or (name == "numpy" and own <= 1.6)
                    self._row(
                        f"{unit}, {name}",
                        own,
                        "ns",
                        f"C {times.median(c):.3f} ns",
                        ratio,
                        goal,
                        reached,
                    )
            both = ", ".join(f"{name} {times.median(name):.3f} ns" for name in limits)
            self.notes.append(f"C for OLH is the faster of {both}.")
        self._against_peers(unit, times, peers, {"numpy": 300, "numba": 2000})

    def oue(self) -> None:
        oracle, n = OUE(EPSILON, D), SIZES["oue"]
        rows = oracle.perturb(self._items(n), self.rng)
        contenders = [
            Contender(name, lambda m=m: m.oue_counts(rows, D), n)
            for name, m in self.modules.items()
        ]
        if self.c:
            contenders.append(Contender("C", self.c.oue(oracle, rows), n))
        peers = self._peers("oue")
        times = self._time(contenders, peers)
        unit = "OUE, per report"
        if self.c and "numba" in self.modules:
            ratio = times.ratio("numba", "C")
            against = f"C {times.median('C'):.2f} ns"
            self._row(
                f"{unit}, numba",
                times.median("numba"),
                "ns",
                against,
                ratio,
                "<= 1.3x",
                ratio <= 1.3,
            )
        self._against_peers(unit, times, peers, {"numpy": 20, "numba": 50})

    def grr(self) -> None:
        n = SIZES["grr"]
        reports = GRR(EPSILON, D).perturb(self._items(n), self.rng)
        contenders = [
            Contender(name, lambda m=m: m.grr_counts(reports, D), n)
            for name, m in self.modules.items()
        ]
        peers = self._peers("grr")
        self._against_peers(
            "GRR, per report", self._time(contenders, peers), peers, {"numpy": 100, "numba": 100}
        )

    def reading(self) -> None:
        """What recoveries ask of reports, beside counting them with the same kernels."""
        oracle, n = OLH(EPSILON, D, G), SIZES["olh"]
        reports = oracle.perturb(self._items(n), self.rng)
        seeds, buckets = reports["seed"], reports["bucket"]
        some = np.sort(self.rng.choice(D, LOOKED_AT, replace=False)).astype(np.uint32)
        lines = packed_lines(numpy_kernels.olh_supported(seeds, buckets, some, G))
        rows = OUE(EPSILON, D).perturb(self._items(n), self.rng)
        for name, module in self.modules.items():
            tests, few = n * D, n * LOOKED_AT
            times = Times(
                [
                    Contender("tests", lambda m=module: m.olh_counts(seeds, buckets, D, G), tests),
                    Contender(
                        "sizes",
                        lambda m=module: m.olh_counts_and_sizes(seeds, buckets, D, G),
                        tests,
                    ),
                    Contender(
                        "supported", lambda m=module: m.olh_supported(seeds, buckets, some, G), few
                    ),
                    Contender("pairs", lambda m=module: m.joint_counts(lines, lines), few),
                    Contender("rows", lambda m=module: m.oue_counts(rows, D), n),
                    Contender("ones", lambda m=module: m.unary_sizes(rows), n),
                    Contender("bits", lambda m=module: m.unary_supported(rows, some), n),
                ],
                self.rounds,
            )
            for description, work, beside, limit in (
                ("OLH sizes and counts, per test", "sizes", "tests", 1.3),
                (f"OLH, {LOOKED_AT} items of each report, per test", "supported", "tests", 2.5),
                (f"pairs of {LOOKED_AT} items, per report and item", "pairs", "tests", 1.0),
                ("OUE sizes, per report", "ones", "rows", 4.0),
                (f"OUE, {LOOKED_AT} items of each report, per report", "bits", "rows", 4.0),
            ):
                ratio, own = times.ratio(work, beside), times.median(work)
                against = f"counting {times.median(beside):.3g} ns"
                self._row(
                    f"{description}, {name}",
                    own,
                    "ns",
                    against,
                    ratio,
                    f"<= {limit:g}x",
                    ratio <= limit,
                )

    def transform(self) -> None:
        values = self.rng.integers(0, 1000, TRANSFORMED)
        contenders = [
            Contender(name, lambda m=m: m.walsh_hadamard(values), TRANSFORMED)
            for name, m in self.modules.items()
        ]
        if self.c:
            contenders.append(Contender("C", self.c.walsh_hadamard(values), TRANSFORMED))
        times = self._time(contenders, [])
        for name, limit in (("numpy", 4.0), ("numba", 1.3)):
            if self.c and name in self.modules:
                ratio, own = times.ratio(name, "C"), times.median(name)
                against = f"C {times.median('C'):.2f} ns"
                description = f"Walsh-Hadamard transform, per number, {name}"
                self._row(description, own, "ns", against, ratio, f"<= {limit:g}x", ratio <= limit)

    def simulate(self) -> None:
        oracle, items = OUE(EPSILON, D), self._items(USERS)
        ours = Contender("ours", lambda: oracle.perturb(items, self.rng), USERS)
        peers = self._peers("simulate")
        times = Times([ours, *peers], self.rounds)
        seconds = times.median("ours") * USERS / 1e9
        unit = f"simulate {USERS:,} OUE users"
        self._row(unit, seconds, "s", "", None, "<= 0.5 s", seconds <= 0.5)
        if peers:
            best = times.fastest([peer.name for peer in peers])
            ratio = times.ratio(best, "ours")
            against = f"{best} {times.median(best) * USERS / 1e9:.1f} s"
            self._row(unit, seconds, "s", against, ratio, ">= 30x", ratio >= 30)

    def _items(self, n: int) -> np.ndarray:
        return self.rng.integers(0, D, n)

    def _peers(self, description: str, units: int = 1) -> list[Contender]:
        """Return the peers' work, on enough users for tens of milliseconds."""
        users = PEER_USERS[description]
        items = self._items(users).tolist()
        attribute = "simulate_oue" if description == "simulate" else description
        return [
            Contender(peer.name, getattr(peer, attribute)(items), users * units)
            for peer in self.peers
        ]

    def _time(self, contenders: list[Contender], peers: list[Contender]) -> Times:
        """Time them all, after seeing that all that count the same reports count the same."""
        counts = [contender.work() for contender in contenders]
        if not all(np.array_equal(counts[0], other) for other in counts[1:]):
            raise AssertionError(f"{', '.join(c.name for c in contenders)} do not count the same")
        return Times([*contenders, *peers], self.rounds)

    def _against_peers(
        self, unit: str, times: Times, peers: list[Contender], least: dict[str, int]
    ) -> None:
        for name in self.modules:
            own, goal = times.median(name), f">= {least[name]}x"
            if peers:
                best = times.fastest([peer.name for peer in peers])
                ratio = times.ratio(best, name)
                against = f"{best} {times.median(best):.1f} ns"
                self._row(f"{unit}, {name}", own, "ns", against, ratio, goal, ratio >= least[name])
            else:
                self._row(f"{unit}, {name}", own, "ns", "no peer", None, goal, None)

    def _row(
        self,
        description: str,
        ours: float,
        unit: str,
        against: str,
        ratio: float | None,
        goal: str,
        reached: bool | None,
    ) -> None:
        factor = "" if ratio is None else f"{ratio:.2f}x" if ratio < 10 else f"{ratio:.0f}x"
        answer = {True: "yes", False: "no", None: "not measured"}[reached]
        self.rows.append(Row(description, f"{ours:.3g} {unit}", against, factor, goal, answer))


def machine() -> str:
    """Return a line on where this ran."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [
            line.split(":", 1)[1].strip()
            for line in info.read_text().splitlines()
            if line[:10] == "model name"
        ]
        cpu = models[0] if models else cpu
    try:
        import numba

        compiled = f"numba {numba.__version__}"
    except ImportError:
        compiled = "no numba"
    return (
        f"{datetime.datetime.now(tz=datetime.UTC):%Y-%m-%d}, {cpu}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, numpy {np.__version__}, {compiled}"
    )


def show(rows: list[Row], notes: list[str]) -> None:
    """Print the table in Markdown, then the notes."""
    header = Row("what", "ours", "against", "ratio", "wanted", "reached")
    lines = [tuple(vars(row).values()) for row in (header, *rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for number, line in enumerate(lines):
        print(
            "| "
            + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
            + " |"
        )
        if number == 0:
            print("|" + "|".join("-" * (width + 2) for width in widths) + "|")
    print()
    for note in notes:
        print(f"- {note}")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.kernels", description=__doc__)
    parser.add_argument(
        "--rounds", type=int, default=7, help="times that everything runs, at least 5 (default 7)"
    )
    options = parser.parse_args(arguments)
    if options.rounds < 5:
        parser.error("--rounds must be at least 5")
    print(
        f"Kernels at d = {D}, epsilon = {EPSILON}, one thread, medians of "
        f"{options.rounds}\n{machine()}\n"
    )
    bench = Bench(options.rounds)
    bench.run()
    bench.notes += NOTES
    show(bench.rows, bench.notes)


if __name__ == "__main__":
    main()
