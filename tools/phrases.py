"""Check prose and names against `phrases.txt`: `python tools/phrases.py [PATH ...]`.

Reads docstrings, comments, string literals and assigned names of Python, comments of JavaScript
and prose of Markdown, in all files that git knows; lines of Markdown end at 100 characters.
A line with `phrases: quoted` in a comment may contain any phrase.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path

HERE = Path(__file__).parent
WIDTH = 100
QUOTED = "phrases: quoted"
SUFFIXES = (".py", ".js", ".md")
VENDORED = "/static/swagger-ui/"

_PYTHON = re.compile(
    r"""(?P<prose>\s+|#[^\n]*|"""
    r"""[a-zA-Z]*(?P<quote>\"{3}|'{3}|["'])(\\.|(?!(?P=quote)).)*(?P=quote))|\w+|.""",
    re.DOTALL,
)
_JAVASCRIPT = re.compile(
    r"""(?P<quote>["'`])(\\.|(?!(?P=quote)).)*(?P=quote)|(?P<prose>\s+|/\*.*?\*/|//[^\n]*)|.""",
    re.DOTALL,
)
_MARKS = re.compile(r"^#|^\w*[\"']+|[\"']+$|//+|\*")
_FENCE = re.compile(r"^ *(```+|~~~+).*?^ *\1 *$", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)|\]\([^)]*\)|<https?:[^>]*>", re.DOTALL)
_MAY_BE_LONG = re.compile(r"\||#|\S*https?://|.*\]\(|\[[^]]*\]:|<|!\[")

Hit = tuple[int, str, str]
"""Line, phrase, alternative."""


def main(paths: list[str]) -> int:
    """Print each hit as file:line, phrase, alternative; return 1 if there is one."""
    phrases, names = read_list((HERE / "phrases.txt").read_text())
    failed = False
    for file in _files(paths):
        for line, phrase, alternative in check(file, Path(file).read_text(), phrases, names):
            print(f"{file}:{line}: {phrase!r}: {alternative}")
            failed = True
    if failed:
        print(f"Write the alternative. A line that quotes ends with a comment: {QUOTED}")
    return int(failed)


def read_list(text: str) -> tuple[dict[re.Pattern[str], str], dict[str, str]]:
    """Return the alternatives by phrase, and by variable name."""
    sections = ConfigParser(delimiters="\t", interpolation=None)
    sections.read_string(text)
    patterns = {
        re.compile(phrase.replace(" ", r"\s+"), re.IGNORECASE): alternative
        for phrase, alternative in sections["phrases"].items()
    }
    return patterns, dict(sections["names"])


def check(
    file: str, text: str, phrases: dict[re.Pattern[str], str], names: dict[str, str]
) -> list[Hit]:
    """Return the hits of one file, by line."""
    if file.endswith(".py"):
        prose = _PYTHON.sub(_prose, text)
        hits = [(line, name, names[name]) for line, name in _assigned(text) if name in names]
    elif file.endswith(".js"):
        prose = _JAVASCRIPT.sub(_prose, text)
        hits = []
    else:
        prose = _markdown_prose(text)
        hits = list(_long_lines(text, prose))
    for pattern, alternative in phrases.items():
        for match in pattern.finditer(prose):
            line = prose.count("\n", 0, match.start()) + 1
            hits.append((line, " ".join(match[0].split()), alternative))
    lines = text.splitlines()
    return sorted(hit for hit in hits if QUOTED not in lines[hit[0] - 1])


def _blank(text: str) -> str:
    """Return text in which all but the line ends is a character that no phrase matches."""
    return re.sub(r"[^\n]", "\0", text)


def _prose(match: re.Match[str]) -> str:
    """Return a comment, a string or white space without its marks, and anything else blanked out.

    White space stands between adjacent literals and comments, so a phrase may run across them.
    """
    if match["prose"] is None:
        return _blank(match[0])
    return _MARKS.sub(lambda mark: " " * len(mark[0]), match[0])


def _assigned(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and name, without leading underscores, of each variable and parameter."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield node.lineno, name.lstrip("_")


def _markdown_prose(text: str) -> str:
    for pattern in (_FENCE, _CODE):
        text = pattern.sub(lambda match: _blank(match[0]), text)
    return text


def _long_lines(text: str, prose: str) -> Iterator[Hit]:
    for number, (line, read) in enumerate(
        zip(text.splitlines(), prose.splitlines(), strict=True), 1
    ):
        fenced = not read.strip("\0")
        if len(line) > WIDTH and not fenced and not _MAY_BE_LONG.match(line.lstrip()):
            yield number, f"{len(line)} columns", f"break the line at {WIDTH}"


def _files(paths: list[str]) -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *paths], capture_output=True, text=True, check=True
    )
    return [
        file
        for file in listed.stdout.split("\0")
        if file.endswith(SUFFIXES) and VENDORED not in file and Path(file).exists()
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
