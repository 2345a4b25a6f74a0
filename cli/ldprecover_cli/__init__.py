"""The command `ldprecover`: serve a round, open it, report to it, attack it, read it, recover it."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line and exit: 0, or one of the codes that `failures` lists."""
    try:
        from ldprecover_cli.app import run

        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # a terminal without UTF-8 shows ? for it
        sys.exit(run(sys.argv[1:]))
    except KeyboardInterrupt:  # before the first command could handle it, or after the last
        sys.exit(130)
