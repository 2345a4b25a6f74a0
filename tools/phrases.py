"""Check prose and names against `phrases.txt`: `python tools/phrases.py [PATH ...]`.

Reads docstrings, comments, string literals and assigned names of Python, comments of JavaScript
and prose of Markdown, in all files that git knows; lines of Markdown end at 100 characters.
Folders (without those below them) and files in `phrases_todo.txt` are left out unless a PATH names
them. A line with `phrases: quoted` in a comment may contain any phrase.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
WIDTH = 100
QUOTED = "phrases: quoted"
SUFFIXES = (".py", ".js", ".md")
VENDORED = "/static/swagger-ui/"

_JAVASCRIPT = re.compile(
    r"""(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)"""
    r"""|(?P<comment>/\*.*?\*/|//[^\n]*)""",
    re.DOTALL,
)
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
    return int(failed)


def read_list(text: str) -> tuple[dict[re.Pattern[str], str], dict[str, str]]:
    """Return the alternatives by phrase, and by variable name."""
    sections: dict[str, dict[str, str]] = {}
    rows: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("["):
            rows = sections.setdefault(line.strip("[]"), {})
        elif line and not line.startswith("#"):
            phrase, alternative = re.split(r"\t+", line)
            rows[phrase] = alternative
    patterns = {
        re.compile(phrase.replace(" ", r"\s+"), re.IGNORECASE): alternative
        for phrase, alternative in sections["phrases"].items()
    }
    return patterns, sections["names"]


def check(
    file: str, text: str, phrases: dict[re.Pattern[str], str], names: dict[str, str]
) -> list[Hit]:
    """Return the hits of one file, by line."""
    if file.endswith(".py"):
        prose = _python_prose(text)
        hits = [(line, name, names[name]) for line, name in _assigned(text) if name in names]
    elif file.endswith(".js"):
        prose = _javascript_comments(text)
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


def _python_prose(text: str) -> str:
    """Return a module's comments and strings in their places, and code blanked out.

    White space stands between adjacent literals and comments, so a phrase may run across them.
    """
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    prose = list(_blank(text))
    end = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        first = starts[token.start[0] - 1] + token.start[1]
        if tokenize.tok_name[token.type] in ("COMMENT", "STRING", "FSTRING_MIDDLE"):
            if not text[end:first].strip():
                prose[end:first] = text[end:first]
            end = starts[token.end[0] - 1] + token.end[1]
            prose[first:end] = re.sub(r"^#|^\w*[\"']+|[\"']+$", _spaces, text[first:end])
    return "".join(prose)


def _spaces(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _assigned(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and name, without leading underscores, of each variable and parameter."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id.lstrip("_")
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg.lstrip("_")


def _javascript_comments(text: str) -> str:
    def comment(match: re.Match[str]) -> str:
        return re.sub(r"//+|\*", _spaces, match[0]) if match["comment"] else _blank(match[0])

    prose, end = [], 0
    for match in _JAVASCRIPT.finditer(text):
        prose += [_blank(text[end : match.start()]), comment(match)]
        end = match.end()
    return "".join([*prose, _blank(text[end:])])


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
    todo = set() if paths else set((HERE / "phrases_todo.txt").read_text().splitlines())
    return [
        file
        for file in listed.stdout.split("\0")
        if file.endswith(SUFFIXES)
        and VENDORED not in file
        and Path(file).exists()
        and todo.isdisjoint((file, f"{Path(file).parent.as_posix()}/"))
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
