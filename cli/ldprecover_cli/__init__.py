"""The command `ldprecover`: serve a round, open it, report to it, attack it, read it, recover it."""

from ldprecover_cli.app import main

__all__ = ["main"]
