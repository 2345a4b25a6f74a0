"""The command `ldprecover`: serve, open, report to, attack, read and recover rounds."""

import io
import os
import signal
import sys

from ldprecover_cli.interrupts import exit_interrupted, print_interrupted

__all__ = ["main"]


def main() -> None:
    """Run the command line and exit with 0 or a code of `errors`; `serve` ends by its signal."""
    # During an import and in a finaliser, KeyboardInterrupt can be swallowed or wrapped.
    if next((word for word in sys.argv[1:] if not word.startswith("-")), None) == "serve":
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if os.getpid() == 1:  # of a container, which is sent only signals that it handles
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda number, frame: os._exit(128 + number))
    elif signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # it is not ignored
        signal.signal(signal.SIGINT, exit_interrupted)
    try:
        from ldprecover_cli.app import run
    except ModuleNotFoundError as error:
        raise _exception(error) from None

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # None where the shell closed it
            # A terminal without UTF-8 shows ? for characters it lacks.
            stream.reconfigure(errors="replace")
    try:
        if code := run(sys.argv[1:]):
            sys.stdout = None  # Python would report again that a full disk takes no output
        sys.exit(code)
    except KeyboardInterrupt:  # after the command
        print_interrupted()
        sys.exit(130)


def _exception(error: ModuleNotFoundError) -> BaseException:
    """Return an exit with the package that an install without the extra `cli` lacks, or `error`."""
    if error.name is None or error.name.partition(".")[0].startswith("ldprecover"):
        return error
    return SystemExit(
        f"error: the command needs {error.name}, which is not installed: pip install "
        "'ldprecover[cli]'"
    )
