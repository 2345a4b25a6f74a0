"""Python processes forked from one that has imported the project: they are there a second sooner,
else as any other.
"""

import contextlib
import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import TextIO, TypeAlias

# What no plugin changes: the application's messages are made of the protocols there are when it is
# imported.
PRELOADED = [
    *("ldprecover_server.app", "anyio._backends._asyncio", "uvloop"),
    *(
        "ldprecover_cli.app",
        "ldprecover_cli.serve",
        "ldprecover_client.population",
        "rich.progress",
    ),
    *(
        "ldprecover_attacker.campaign",
        "ldprecover_experiments.simulation.demo",
        "ldprecover_cli.demo.picture",
    ),
]
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(PRELOADED)


class ForkedPython:
    """Python with these arguments, `-c CODE` or `-m MODULE …`, in what tests use of
    `subprocess.Popen`.

    It prints into pipes of text, or to the files of the numbers given; its standard input is empty.
    Warnings are errors if the environment says so of all, and nothing that is registered for the
    interpreter's end is called.
    """

    def __init__(
        self,
        arguments: tuple[str, ...],
        folder: Path,
        environment: Mapping[str, str],
        stdout: int | None = None,
        stderr: int | None = None,
        start_new_session: bool = False,
    ) -> None:
        with contextlib.ExitStack() as theirs:
            self.stdout, out = _printing(theirs, stdout)
            self.stderr, err = _printing(theirs, stderr)
            how = (folder, dict(environment), out, err, start_new_session)
            self._process = _context.Process(target=_run, args=(arguments, *how))
            self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit status; None while it runs on."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """Return the exit status; None while it runs on."""
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it has not ended."""
        if self._process.is_alive():
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it, if it has not ended."""
        self._process.kill()

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end and return the exit status. Raises TimeoutExpired."""
        self._process.join(timeout)
        status = self._process.exitcode
        if status is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(__name__, timeout)
        return status

    def communicate(self) -> tuple[str, str]:
        """Read what it prints to the end, and wait for its own."""
        with ThreadPoolExecutor(2) as threads:
            out, err = threads.map(_rest, (self.stdout, self.stderr))
        self.wait()
        return out, err


Process: TypeAlias = "ForkedPython | subprocess.Popen[str]"


def start_python(
    *arguments: str,
    folder: Path,
    environment: Mapping[str, str],
    stdout: int | None = None,
    stderr: int | None = None,
    start_new_session: bool = False,
) -> Process:
    """Start Python as `ForkedPython` does, or a separate interpreter to measure coverage."""
    if "COVERAGE_PROCESS_CONFIG" not in environment:
        return ForkedPython(arguments, folder, environment, stdout, stderr, start_new_session)
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if stdout is None else stdout,
        stderr=subprocess.PIPE if stderr is None else stderr,
        text=True,
        start_new_session=start_new_session,
    )


def _printing(theirs: contextlib.ExitStack, number: int | None) -> tuple[TextIO | None, Connection]:
    """Return what to read from, of a pipe, and what the process prints to, as multiprocessing
    passes it on.
    """
    if number is not None:
        return None, theirs.enter_context(Connection(os.dup(number), readable=False))
    read, write = _context.Pipe(duplex=False)
    theirs.enter_context(write)
    with read:
        return os.fdopen(os.dup(read.fileno()), encoding="utf-8"), write


def _rest(pipe: TextIO | None) -> str:
    if pipe is None or pipe.closed:
        return ""
    with pipe:
        return pipe.read()


def _run(
    arguments: tuple[str, ...],
    folder: Path,
    environment: dict[str, str],
    stdout: Connection,
    stderr: Connection,
    start_new_session: bool,
) -> None:
    """Make of the forked process what an interpreter would find, and run."""
    if start_new_session:
        os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    with Path(os.devnull).open() as stdin, stdout, stderr:
        for number, descriptor in enumerate((stdin.fileno(), stdout.fileno(), stderr.fileno())):
            os.dup2(descriptor, number)
    tempfile.tempdir = None  # Python looks it up again
    sys.stdout, sys.stderr = _printer(1, by_lines=os.isatty(1)), _printer(2, by_lines=True)
    sys.path[:0] = ["", *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    if environment.get("PYTHONWARNINGS") == "error":
        warnings.simplefilter("error")
    kind, module, *rest = arguments
    sys.argv = [kind, *rest]
    try:
        if kind == "-m":
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        else:
            sys.modules["__main__"] = ModuleType("__main__")
            exec(compile(module, "<string>", "exec"), vars(sys.modules["__main__"]))
    except Exception:  # noqa: BLE001  as at the end of an interpreter
        sys.excepthook(*sys.exc_info())
        sys.exit(1)


def _printer(number: int, *, by_lines: bool) -> TextIO:
    return os.fdopen(number, "w", 1 if by_lines else -1, "utf-8", "backslashreplace", closefd=False)
