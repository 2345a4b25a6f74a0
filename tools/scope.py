"""Print how large the project is, beside the targets it sets itself: `python tools/scope.py`.

Tokens are Python's without comments, docstrings and line ends, of the files that git knows; files
with "test" in their path are tests. The page of commands, which a script writes from their help,
has a row apart from the other pages. A number up to 2 % above its target, rounded down, is a
warning; above that it is too many, and the exit status is 1.
"""

import io
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TARGETS = {
    "source tokens": 278_800,
    "test tokens": 352_000,
    "lines of JavaScript, shell, YAML, TOML, HTML": 12_520,
    "columns of the table of rounds": 28,
    "HTTP calls": 35,
    "commands": 35,
    "settings": 26,
    "problem types": 43,
    "words in docs/reference/commands.md": 6_500,
    "words in docs": 52_600,
}
HINTS = {
    "ABOVE": "ABOVE passes: it is within 2 % of a target.",
    "TOO MANY": "TOO MANY fails: take something out, or raise the target in tools/scope.py in the "
    "same change, and say in its message what the room is for.",
}

_OTHER_CODE = {".html", ".js", ".mjs", ".sh", ".toml", ".ts", ".yaml", ".yml"}
_VENDORED = ("/vendor/", "/swagger-ui/")
_SKIPPED = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
_BEFORE_A_DOCSTRING = _SKIPPED - {tokenize.ENDMARKER}


def main() -> int:
    """Print each number with its target; return 1 if one is too large."""
    numbers = _files() + Counter(dict(_interfaces()))
    verdicts = {name: verdict(numbers[name], target) for name, target in TARGETS.items()}
    for name, target in TARGETS.items():
        print(f"{numbers[name]:8,} of {target:7,} {name}  {verdicts[name]}".rstrip())
    for hint in HINTS:
        if hint in verdicts.values():
            print(HINTS[hint])
    return int("TOO MANY" in verdicts.values())


def verdict(number: int, target: int) -> str:
    """Return what to print beside a number: nothing, ABOVE or TOO MANY."""
    if number <= target:
        return ""
    return "ABOVE" if number <= target + target // 50 else "TOO MANY"


def tokens(text: str) -> int:
    """Return the number of tokens of Python code without comments, docstrings and line ends."""
    previous, count = tokenize.ENCODING, 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_docstring = token.type == tokenize.STRING and previous in _BEFORE_A_DOCSTRING
        count += token.type not in _SKIPPED and not is_docstring
        previous = token.type
    return count


def _files() -> Counter[str]:
    """Return the numbers that follow from the files that git knows."""
    listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, check=True, text=True)
    numbers: Counter[str] = Counter()
    for name in listed.stdout.split("\0"):
        file = Path(name)
        if not file.is_file() or any(part in f"/{name}" for part in _VENDORED):
            continue
        if file.suffix == ".py":
            kind = "test tokens" if "test" in name else "source tokens"
            numbers[kind] += tokens(file.read_text())
        elif file.suffix in _OTHER_CODE:
            numbers["lines of JavaScript, shell, YAML, TOML, HTML"] += file.read_text().count("\n")
        elif f"words in {name}" in TARGETS:
            numbers[f"words in {name}"] += len(file.read_text().split())
        elif file.suffix == ".md" and file.parts[0] == "docs":
            numbers["words in docs"] += len(file.read_text().split())
    return numbers


def _interfaces() -> Iterator[tuple[str, int]]:
    """Return the numbers that follow from the interfaces: of HTTP, the command and the database."""
    from typer.main import get_command

    from ldprecover_cli.app import app
    from ldprecover_interface.problems import ProblemType
    from ldprecover_server import create_app
    from ldprecover_server.settings import Settings
    from ldprecover_server.storage.schema import rounds

    with tempfile.TemporaryDirectory() as folder:
        application = create_app(Settings(database_url=f"sqlite:///{folder}/scope.db"))
        paths = application.openapi()["paths"]
    yield "HTTP calls", sum(map(len, paths.values()))
    yield "commands", _commands(get_command(app))
    yield "settings", len(Settings.model_fields)
    yield "problem types", len(ProblemType)
    yield "columns of the table of rounds", len(rounds.columns)


def _commands(command: Any) -> int:
    below = getattr(command, "commands", {})
    return sum(map(_commands, below.values())) if below else 1


if __name__ == "__main__":
    sys.exit(main())
