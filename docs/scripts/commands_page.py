"""Write the page of all commands from what they print as help.

python docs/scripts/commands_page.py
"""

import html
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

PAGE = Path(__file__).parents[1] / "reference" / "commands.md"

HEAD = """# Commands

From the help of the commands, by `docs/scripts/commands_page.py`. Each has `--help`.

## Shared options

Several commands have these; their own tables only name them.
"""
SHARED_BY = 3
"""How many commands must have an option for it to stand in the first table alone."""
MORE = {"## `ldprecover serve`": "\nIts options are the [settings](settings.md) of the server.\n"}

Entry = tuple[str, str]
"""An argument or option in Typer's notation, and what it says."""


def commands_page() -> str:
    """Return the page: shared options, then a section for each command and group."""
    command = "-m", "typer", "ldprecover_cli.app", "utils", "docs", "--name", "ldprecover"
    printed = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=True)
    _, *parts = re.split(r"^(#+ `.*`)\n", html.unescape(printed.stdout), flags=re.MULTILINE)
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    counts = Counter(entry for body in sections.values() for entry in _entries(body))
    shared = [entry for entry, count in counts.items() if count >= SHARED_BY and entry[0][0] == "-"]
    text = HEAD + _table(shared)
    for heading, body in sections.items():
        entries = _entries(body)
        own = [entry for entry in entries if entry not in shared]
        options = [re.findall(r"--[\w-]+", entry[0]) for entry in entries if entry in shared]
        names = [f"`{option[0]}`" for option in options]
        level = "" if heading.startswith("##") else "#"
        text += f"\n{level}{heading}\n{_description(body)}{MORE.get(heading, '')}{_table(own)}"
        if names:
            text += f"\nShared: {', '.join(names)}.\n"
    return text


def _entries(body: str) -> list[Entry]:
    """Return the arguments and options of a command, but `--help`."""
    listed = body.partition("**Commands**")[0]
    entries = re.findall(r"^\* `(.+?)`: (.*)$", listed, re.MULTILINE)
    return [(name, " ".join(text.split())) for name, text in entries if name != "--help"]


def _description(body: str) -> str:
    """Return the text above the usage, with the examples as one block."""
    text, *examples = body.partition("**Usage**")[0].rstrip().split("\n\nExample: ")
    lines = "".join(f"$ {example}\n" for example in examples)
    return f"{text}\n\n```console\n{lines}```\n" if examples else f"{text}\n"


def _table(entries: list[Entry]) -> str:
    """Return a table of arguments and options, or nothing without any."""
    cells = [(name.replace("|", r"\|"), text.replace("|", r"\|")) for name, text in entries]
    rows = [f"| `{name}` | {text} |" for name, text in cells]
    return "\n".join(["", "| name | what it says |", "|---|---|", *rows, ""]) if rows else ""


if __name__ == "__main__":
    PAGE.write_text(commands_page(), encoding="utf-8")
