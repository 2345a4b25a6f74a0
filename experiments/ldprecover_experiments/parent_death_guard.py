"""The command `ldprecover` in a process that ends with the one that started it, however that ends.

    python -m ldprecover_experiments.parent_death_guard serve --port 0

Standard input is the tie: it ends when nobody has its other end any more.
"""

import os
import runpy
import signal
import sys
import threading

__all__: list[str] = []


def _follow() -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=_follow, daemon=True).start()
    runpy.run_module("ldprecover_cli", run_name="__main__", alter_sys=True)
