"""The command `ldprecover`: serve a round, open it, report to it, attack it, read it, recover
it.
"""

import io
import sys
from typing import NoReturn

__all__ = ["main"]


def main() -> None:
    """Run the command line and exit: 0, or one of the codes that `failures` lists."""
    try:
        try:
            from ldprecover_cli.app import run
        except ModuleNotFoundError as error:
            _exit_without(error)

        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # None where the shell closed it
                stream.reconfigure(
                    errors="replace"
                )  # a terminal without UTF-8 shows ? for what it has not
        sys.exit(run(sys.argv[1:]))
    except KeyboardInterrupt:  # before the first command could handle it, or after the last
        if sys.stderr is not None:
            sys.stderr.write("Interrupted.\n")
        sys.exit(130)


def _exit_without(error: ModuleNotFoundError) -> NoReturn:
    """Say in a sentence what an install without the extra `cli` lacks."""
    if error.name is None or error.name.partition(".")[0].startswith("ldprecover"):
        raise error
    sys.exit(
        f"error: the command needs {error.name}, which is not installed: pip install "
        "'ldprecover[cli]'"
    )
