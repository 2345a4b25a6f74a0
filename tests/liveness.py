"""What one input costs a server: the longest turn of its event loop, and how far its memory rises.

A turn that takes long stops every other client; so it does not matter what becomes of the input
itself.
"""

import asyncio
import mmap
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import uvicorn

T = TypeVar("T")

TURN_SECONDS = 0.1
"""The longest that one input may keep the event loop from everybody else."""

GROWN_BYTES = 64 << 20
"""The most memory that one input of a few kilobytes may take."""

_EVERY = 0.001
_CELLS = 2 * 8  # bytes: the time of the last tick, the longest turn


@dataclass(frozen=True)
class Cost:
    """Of one input: seconds of the loop's longest turn, and bytes by which memory rose at its
    highest.
    """

    seconds: float
    bytes: int

    @property
    def bearable(self) -> bool:
        return self.seconds <= TURN_SECONDS and self.bytes <= GROWN_BYTES


def assert_live(cost: Cost, again: Callable[[], Cost]) -> None:
    """Fail if an input costs too much, and does so again each of three times.

    What else the machine does, and collections of garbage, can make one turn long, but not always
    the same one.
    """
    costs = [cost]
    while not costs[-1].bearable and len(costs) < 4:
        costs.append(again())
    least = Cost(min(each.seconds for each in costs), min(each.bytes for each in costs))
    assert costs[-1].bearable or least.bearable, (
        f"the event loop was stopped for {least.seconds * 1000:.0f} ms, memory rose by "
        f"{least.bytes >> 20} MiB"
    )


class LoopWatch:
    """Finds the longest turn of an event loop, by a timer that is due every millisecond.

    What it finds is kept in 16 bytes of a file, which another process may share.
    """

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._cells = memoryview(mmap.mmap(file.fileno(), _CELLS)).cast("d")

    def start(self) -> None:
        """Watch the running loop as long as it runs."""
        self._cells[0], self._cells[1] = time.monotonic(), 0.0
        asyncio.get_running_loop().call_later(_EVERY, self._tick)

    @property
    def longest(self) -> float:
        """Seconds of the longest turn."""
        return self._cells[1]

    def reset(self) -> None:
        """Forget the turns before this one."""
        self._cells[1] = 0.0

    def until_next_tick(self) -> None:
        """Wait, in another process, until the current turn has ended."""
        now = time.monotonic()
        while self._cells[0] < now:
            time.sleep(_EVERY / 2)

    def _tick(self) -> None:
        now = time.monotonic()
        self._cells[1] = max(self._cells[1], now - self._cells[0] - _EVERY)
        self._cells[0] = now
        asyncio.get_running_loop().call_later(_EVERY, self._tick)


class PeakMemory:
    """The highest resident memory of a process since the last `reset`; Linux keeps it."""

    def __init__(self, pid: int | str = "self") -> None:
        self._process = Path(f"/proc/{pid}")
        self.reset()

    def reset(self) -> None:
        """Begin at the memory of now."""
        (self._process / "clear_refs").write_text("5")
        self._before = self._read("VmRSS")

    @property
    def grown(self) -> int:
        """Bytes from the last reset to the peak."""
        return max(0, self._read("VmHWM") - self._before)

    def _read(self, name: str) -> int:
        match = re.search(
            rf"^{name}:\s+(\d+) kB", (self._process / "status").read_text(), re.MULTILINE
        )
        assert match is not None
        return int(match[1]) * 1024


class WatchedProcess:
    """A server in another process: `first` is what this runs before it serves."""

    def __init__(self, folder: Path) -> None:
        path = folder / "turns"
        path.write_bytes(bytes(_CELLS))
        root = Path(__file__).parent.parent
        self.first = (
            f"import sys; sys.path.append({str(root)!r}); import tests.liveness as l; "
            f"l.watch({str(path)!r})\n"
        )
        self._watch = LoopWatch(path)

    def measure(self, pid: int, call: Callable[[], T]) -> tuple[T, Cost]:
        """Make a call to the server, and return with its result what it cost."""
        memory = PeakMemory(pid)
        self._watch.until_next_tick()
        self._watch.reset()
        result = call()
        self._watch.until_next_tick()
        return result, Cost(self._watch.longest, memory.grown)


def watch(path: str) -> None:
    """Watch the loop of the server that this process is going to run, and share what is found in a
    file.
    """
    start = uvicorn.Server.startup

    async def watched(server: uvicorn.Server, *args: Any, **options: Any) -> None:
        LoopWatch(Path(path)).start()
        await start(server, *args, **options)

    uvicorn.Server.startup = watched  # type: ignore[method-assign,assignment]
