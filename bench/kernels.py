"""Counting and simulating against limits in C and other libraries, on one thread.

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
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from bench.harness import Work, in_turn, median_ratio, seconds
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

    def fastest(self, names: Iterable[str]) -> str:
        return min(names, key=self.median)


class Bench:
    """All comparisons, as far as what they need is installed."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds
        self.rows: list[tuple[str, ...]] = [
            ("what", "ours", "against", "ratio", "wanted", "reached")
        ]
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
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
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
        limits = {}
        if self.c:
            limits = {
                name: self.c.olh(oracle, reports, name) for name in ("olh_multiply", "olh_range")
            }
        times = self._compare(
            "OLH, per (report, item) test",
            lambda m: m.olh_counts(reports["seed"], reports["bucket"], D, G),
            n * D,
            limits,
            {"numpy": 7.0, "numba": 1.0},
            self._peers("olh", D),
            {"numpy": 300, "numba": 2000},
            nanoseconds={"numpy": 1.6},
        )
        if limits:
            both = ", ".join(f"{name} {times.median(name):.3f} ns" for name in limits)
            self.notes.append(f"C for OLH is the faster of {both}.")

    def oue(self) -> None:
        oracle, n = OUE(EPSILON, D), SIZES["oue"]
        rows = oracle.perturb(self._items(n), self.rng)
        self._compare(
            "OUE, per report",
            lambda m: m.oue_counts(rows, D),
            n,
            {"C": self.c.oue(oracle, rows)} if self.c else {},
            {"numba": 1.3},
            self._peers("oue"),
            {"numpy": 20, "numba": 50},
        )

    def grr(self) -> None:
        n = SIZES["grr"]
        reports = GRR(EPSILON, D).perturb(self._items(n), self.rng)
        self._compare(
            "GRR, per report",
            lambda m: m.grr_counts(reports, D),
            n,
            peers=self._peers("grr"),
            peer_ratios={"numpy": 100, "numba": 100},
        )

    def reading(self) -> None:
        """What recoveries ask of reports, beside counting them with the same kernels."""
        n = SIZES["olh"]
        reports = OLH(EPSILON, D, G).perturb(self._items(n), self.rng)
        hashes = reports["seed"], reports["bucket"]
        some = np.sort(self.rng.choice(D, LOOKED_AT, replace=False)).astype(np.uint32)
        lines = packed_lines(numpy_kernels.olh_supported(*hashes, some, G))
        rows = OUE(EPSILON, D).perturb(self._items(n), self.rng)
        for name, module in self.modules.items():
            works: Contenders = {
                "OLH counts": (partial(module.olh_counts, *hashes, D, G), n * D),
                "sizes": (partial(module.olh_counts_and_sizes, *hashes, D, G), n * D),
                "supported": (partial(module.olh_supported, *hashes, some, G), n * LOOKED_AT),
                "pairs": (partial(module.joint_counts, lines, lines), n * LOOKED_AT),
                "OUE counts": (partial(module.oue_counts, rows, D), n),
                "ones": (partial(module.unary_sizes, rows), n),
                "bits": (partial(module.unary_supported, rows, some), n),
            }
            times = Times(works, self.rounds)
            for description, work, beside, limit in (
                ("OLH sizes and counts, per test", "sizes", "OLH counts", 1.3),
                (
                    f"OLH, {LOOKED_AT} items of each report, per test",
                    "supported",
                    "OLH counts",
                    2.5,
                ),
                (f"pairs of {LOOKED_AT} items, per report and item", "pairs", "OLH counts", 1.0),
                ("OUE sizes, per report", "ones", "OUE counts", 4.0),
                (f"OUE, {LOOKED_AT} items of each report, per report", "bits", "OUE counts", 4.0),
            ):
                self._at_most(limit, f"{description}, {name}", times, work, beside)

    def transform(self) -> None:
        values = self.rng.integers(0, 1000, TRANSFORMED)
        self._compare(
            "Walsh-Hadamard transform, per number",
            lambda m: m.walsh_hadamard(values),
            TRANSFORMED,
            {"C": self.c.walsh_hadamard(values)} if self.c else {},
            {"numpy": 4.0, "numba": 1.3},
        )

    def simulate(self) -> None:
        oracle, items = OUE(EPSILON, D), self._items(USERS)
        peers = self._peers("simulate")
        ours = (lambda: oracle.perturb(items, self.rng), USERS)
        times = Times({"ours": ours, **peers}, self.rounds)
        took = times.median("ours") * USERS / 1e9
        unit, own = f"simulate {USERS:,} OUE users", f"{took:.3g} s"
        self._row(unit, own, "", None, "<= 0.5 s", reached=took <= 0.5)
        if peers:
            best = times.fastest(peers)
            ratio = times.ratio(best, "ours")
            against = f"{best} {times.median(best) * USERS / 1e9:.1f} s"
            self._row(unit, own, against, ratio, ">= 30x", reached=ratio >= 30)

    def _items(self, n: int) -> np.ndarray:
        return self.rng.integers(0, D, n)

    def _peers(self, description: str, units: int = 1) -> Contenders:
        """Return the peers' work, on enough users for tens of milliseconds."""
        users = PEER_USERS[description]
        items = self._items(users).tolist()
        return {
            peer.name: (
                peer.simulating(items)
                if description == "simulate"
                else peer.counting(description, items),
                users * units,
            )
            for peer in self.peers
        }

    def _compare(
        self,
        unit: str,
        count: Callable[[Any], np.ndarray],
        units: int,
        limits: Mapping[str, Work] = {},
        limit_ratios: Mapping[str, float] = {},
        peers: Mapping[str, tuple[Work, int]] = {},
        peer_ratios: Mapping[str, int] = {},
        nanoseconds: Mapping[str, float] = {},
    ) -> Times:
        """Add rows: `count` by each module beside the fastest limit, and the fastest peer.

        By module, `limit_ratios` are the longest times wanted, in those of the limit;
        `nanoseconds` also suffice; `peer_ratios` are the lowest speeds wanted, in those of the
        peer. Raises AssertionError unless modules and limits count the same.
        """
        works = {name: partial(count, module) for name, module in self.modules.items()} | limits
        counts = [work() for work in works.values()]
        if not all(np.array_equal(counts[0], other) for other in counts[1:]):
            raise AssertionError(f"{', '.join(works)} do not count the same")
        ours = {name: (work, units) for name, work in works.items()}
        times = Times({**ours, **peers}, self.rounds)
        if limits:
            c = times.fastest(limits)
            for name, limit in limit_ratios.items():
                if name in self.modules:
                    self._at_most(limit, f"{unit}, {name}", times, name, c, nanoseconds.get(name))
        for name in self.modules if peer_ratios else ():
            own, goal = f"{times.median(name):.3g} ns", f">= {peer_ratios[name]}x"
            against, ratio, reached = "no peer", None, None
            if peers:
                best = times.fastest(peers)
                ratio = times.ratio(best, name)
                against, reached = f"{best} {times.median(best):.1f} ns", ratio >= peer_ratios[name]
            self._row(f"{unit}, {name}", own, against, ratio, goal, reached=reached)
        return times

    def _at_most(
        self,
        limit: float,
        description: str,
        times: Times,
        name: str,
        other: str,
        enough: float | None = None,
    ) -> None:
        """Add a row: `name` takes at most `limit` times as long as `other`, or `enough` ns."""
        ratio = times.ratio(name, other)
        own, against = (f"{times.median(each):.3g} ns" for each in (name, other))
        goal, reached = f"<= {limit:g}x", ratio <= limit
        if enough is not None:
            goal = f"<= {enough} ns or {goal}"
            reached |= times.median(name) <= enough
        self._row(description, own, f"{other} {against}", ratio, goal, reached=reached)

    def _row(
        self,
        description: str,
        own: str,
        against: str,
        ratio: float | None,
        goal: str,
        *,
        reached: bool | None,
    ) -> None:
        factor = "" if ratio is None else f"{ratio:.2f}x" if ratio < 10 else f"{ratio:.0f}x"
        answer = {True: "yes", False: "no", None: "not measured"}[reached]
        self.rows.append((description, own, against, factor, goal, answer))


def machine() -> str:
    """Return a line on where this ran."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists() and (model := re.search(r"^model name\s*: (.*)", info.read_text(), re.M)):
        cpu = model[1]
    try:
        import numba

        compiled = f"numba {numba.__version__}"
    except ImportError:
        compiled = "no numba"
    return (
        f"{datetime.datetime.now(tz=datetime.UTC):%Y-%m-%d}, {cpu}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, numpy {np.__version__}, {compiled}"
    )


def show(rows: list[tuple[str, ...]], notes: list[str]) -> None:
    """Print the table in Markdown, its header first, then the notes."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        f"| {' | '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))} |"
        for row in rows
    ]
    lines.insert(1, f"|{'|'.join('-' * (width + 2) for width in widths)}|")
    print(*lines, "", *(f"- {note}" for note in notes), sep="\n")


def main(rounds: Annotated[int, typer.Option(min=5)] = 7) -> None:
    """Count and simulate against limits in C and other libraries; all runs `rounds` times."""
    print(
        f"Kernels at d = {D}, epsilon = {EPSILON}, one thread, medians of {rounds}\n{machine()}\n"
    )
    bench = Bench(rounds)
    bench.run()
    show(bench.rows, [*bench.notes, *NOTES])


if __name__ == "__main__":
    typer.run(main)
