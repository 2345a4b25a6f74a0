"""The command `ldprecover` in a process that ends with its parent process.

    python -m ldprecover_cli.demo.parent_death_guard serve --port 0

Standard input is a pipe from the parent: it ends when the parent does, by a signal too.
"""

import os
import runpy
import signal
import sys
import threading

__all__: list[str] = []


def _end_with_parent() -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    runpy.run_module("ldprecover_cli", run_name="__main__", alter_sys=True)
