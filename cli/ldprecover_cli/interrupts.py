"""What an interrupt of the command does."""

import os
import sys


def exit_interrupted(number: int, frame: object) -> None:
    """Exit with 130 immediately: the handler of SIGINT until a command begins."""
    print_interrupted()
    os._exit(130)


def print_interrupted() -> None:
    """Say on stderr that the command was interrupted."""
    if sys.stderr is not None:
        sys.stderr.write("Interrupted.\n")
        sys.stderr.flush()
