"""The command `ldprecover`: serve, open, report to, attack, read and recover rounds."""

import io
import os
import signal
import sys
from typing import NoReturn

__all__ = ["main"]


def main() -> None:
    """Run the command line and exit with 0 or a code of `errors`; `serve` ends by its signal."""
    if next((word for word in sys.argv[1:] if not word.startswith("-")), None) == "serve":
        # A KeyboardInterrupt during an import or in a finaliser can be swallowed.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if os.getpid() == 1:  # of a container, which is sent only signals that it handles
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda number, frame: os._exit(128 + number))
    try:
        try:
            from ldprecover_cli.app import run
        except ModuleNotFoundError as error:
            _exit_without(error)

        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # None where the shell closed it
                # A terminal without UTF-8 shows ? for characters it lacks.
                stream.reconfigure(errors="replace")
        sys.exit(run(sys.argv[1:]))
    except KeyboardInterrupt:  # while modules are imported, or after the command
        if sys.stderr is not None:
            sys.stderr.write("Interrupted.\n")
        sys.exit(130)


def _exit_without(error: ModuleNotFoundError) -> NoReturn:
    """Exit with the name of the package that an install without the extra `cli` lacks."""
    if error.name is None or error.name.partition(".")[0].startswith("ldprecover"):
        raise error
    sys.exit(
        f"error: the command needs {error.name}, which is not installed: pip install "
        "'ldprecover[cli]'"
    )
