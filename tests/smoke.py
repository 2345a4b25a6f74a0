"""Imports every module, plays a demo and a small experiment, and serves one round.

It needs the packages alone, and no test tools: `python tests/smoke.py`.
"""

import importlib
import pkgutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from ldprecover_cli.app import run
from ldprecover_cli.practice.server import practice_server
from ldprecover_client import Client, Ledger, Reporter

PACKAGES = (
    "ldprecover",
    "ldprecover_interface",
    "ldprecover_client",
    "ldprecover_attacker",
    "ldprecover_server",
    "ldprecover_cli",
    "ldprecover_experiments",
)
SKIPPED = ("__main__", ".env", ".versions.")
"""Ends and parts of modules that run when they are imported."""


def import_all() -> None:
    """Import every module of the packages."""
    for package in map(importlib.import_module, PACKAGES):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not any(part in module.name for part in SKIPPED):
                importlib.import_module(module.name)


def serve_a_round(folder: Path) -> None:
    """Open a round on a server, report to it, recover its frequencies, and read all documents."""
    items = ["tea", "coffee", "water"]
    ledger = Ledger(folder / "ledger.db")
    with practice_server("demo") as server, Client(server.url, key=server.key) as client:
        client.open_round(protocol="olh", epsilon=1.0, items=items, name="drinks")
        Reporter(client, "drinks", ledger=ledger).report("tea")
        client.close_round("drinks")
        assert client.frequencies("drinks").n == 1
        assert len(client.recover("drinks", method="unmix").recovered) == 3
        for path in ("/", "/docs", "/openapi.json", "/readyz", "/metrics"):
            httpx.get(server.url + path).raise_for_status()


def main() -> None:
    """Run all parts in a temporary folder."""
    import_all()
    with TemporaryDirectory() as name:
        out = str(Path(name) / "results")
        users = "--users", "2000"
        if code := run(["demo", "--json", *users]):
            sys.exit(code)
        study = "study", "paper", "mse", "--trials", "1", "--jobs", "1", "--output", out
        if code := run([*study, *users]):
            sys.exit(code)
        serve_a_round(Path(name))


if __name__ == "__main__":
    main()
