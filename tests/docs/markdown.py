"""Reading Markdown: its fenced blocks, links, headings and inline code, each with its line."""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]

_FENCE = re.compile(r"^```(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    language: str
    text: str
    line: int


@dataclass(frozen=True)
class Page:
    """A Markdown file of the repository."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def blocks(self) -> list[Block]:
        return [
            Block(match[1], match[2], self.text.count("\n", 0, match.start()) + 1)
            for match in _FENCE.finditer(self.text)
            if not match[1].startswith("{")  # Sphinx's own
        ]

    @cached_property
    def prose(self) -> str:
        """The text without its fenced blocks."""
        return _FENCE.sub("", self.text)

    @property
    def links(self) -> list[str]:
        return re.findall(r"\]\(([^()\s]+)\)", re.sub(r"`[^`\n]*`", "", self.prose))

    @property
    def code(self) -> list[str]:
        """Inline code."""
        return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", self.prose)]

    @property
    def headings(self) -> list[str]:
        return re.findall(r"^#+ (.+)$", self.prose, re.MULTILINE)

    @property
    def anchors(self) -> set[str]:
        """What a link may have after its #, as GitHub makes it from a heading."""
        return {
            re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in self.headings
        }


COMMANDS = ROOT / "docs" / "reference" / "commands.md"  # written by a script

PAGES = [
    Page(ROOT / "README.md"),
    *(
        Page(path)
        for folder in (".", "how-to", "explanation", "reference", "measurements")
        for path in sorted((ROOT / "docs" / folder).glob("*.md"))
        if path != COMMANDS
    ),
]
