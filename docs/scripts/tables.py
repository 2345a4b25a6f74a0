"""Write the tables of the pages again: the measured ones, and those of the server's own lists.

    python docs/scripts/tables.py              all pages but `reports`, some minutes
    python docs/scripts/tables.py settings     one page
    python docs/scripts/tables.py --check      writes nothing, and fails if a page is out of date

A table is found on its page by its header, a paragraph by its first words. `tables.toml` states
what is measured.
"""

import argparse
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import adversarial_table
import advice_tables
import attack_tables
import canary_table
import recovery_tables
import reference_tables
import reproduction_tables
from measured_rounds import Rounds
from reproduction_means import SUMMARY, Means

from ldprecover_attacker import plugins

DOCS = Path(__file__).parent.parent
_TABLE = re.compile(r"^\|.*(?:\n\|.*)+", re.MULTILINE)
_FIRST_WORDS = 5

PAGES: dict[str, tuple[list[str], Callable[[], Iterable[str]]]] = {
    "adversarial": (["explanation/unmixing.md"], lambda: [adversarial_table.table().markdown()]),
    "attacks": (["measurements/attacks.md"], lambda: attack_tables.tables(Rounds())),
    "evaluation": (
        ["measurements/evaluation.md"],
        lambda: (table.markdown() for table in advice_tables.tables()),
    ),
    "metrics": (["reference/metrics.md"], lambda: [reference_tables.metrics_table()]),
    "recovery": (
        ["explanation/recovery.md", "measurements/recovery.md"],
        lambda: recovery_tables.tables(Rounds(trials=10), Rounds(trials=5)),
    ),
    "reports": (["measurements/evaluation.md"], lambda: [advice_tables.readers().markdown()]),
    "reproduction": (
        ["measurements/reproduction.md"],
        lambda: reproduction_tables.tables(Means(SUMMARY)),
    ),
    "settings": (["reference/settings.md"], lambda: [reference_tables.settings_table()]),
    "unmixing": (["explanation/unmixing.md"], lambda: [canary_table.table().markdown()]),
}
"""Name -> pages, and function that returns their tables; those of one header are in the page's
order. Only `reports`, which makes every report, is left out unless it is named.
"""

_PAGE_BREAK = "\f"


def read(name: str) -> str:
    """Return the text of the pages of a name, one after the other."""
    return _PAGE_BREAK.join((DOCS / page).read_text(encoding="utf-8") for page in PAGES[name][0])


def write(name: str, text: str) -> None:
    """Write the pages of a name, as `read` returned them."""
    for page, part in zip(PAGES[name][0], text.split(_PAGE_BREAK), strict=True):
        (DOCS / page).write_text(part, encoding="utf-8")


def rewritten(text: str, printed: Iterable[str]) -> str:
    """Return a page with new tables and paragraphs in their places.

    Raises LookupError for one without a place on the page.
    """
    tables: dict[str, Iterator[re.Match[str]]] = {}
    changes: list[tuple[int, int, str]] = []
    for each in printed:
        new = each.strip()
        if new.startswith("|"):
            header = _header(new)
            matches = (match for match in _TABLE.finditer(text) if _header(match[0]) == header)
            place = next(tables.setdefault(header, matches), None)
        else:
            start = r"\s+".join(map(re.escape, new.split()[:_FIRST_WORDS]))
            place = re.search(rf"^{start}.*(?:\n.+)*", text, re.MULTILINE)
            new = textwrap.fill(new, 100, break_long_words=False, break_on_hyphens=False)
        if place is None:
            raise LookupError(f"the page has no place for this:\n\n{new}")
        if _squeezed(place[0]) != _squeezed(new):  # equal text keeps its line breaks
            changes.append((place.start(), place.end(), new))
    for first, end, new in sorted(changes, reverse=True):
        text = text[:first] + new + text[end:]
    return text


def _header(table: str) -> str:
    return _squeezed(table.partition("\n")[0])


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def main() -> int:
    """Write the pages, or check them; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pages", nargs="*", default="all", choices=[*PAGES, "all"], metavar="PAGE")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit with 1 where something differs"
    )
    arguments = parser.parse_args()
    plugins.load()  # the tables include the methods of plugins
    differ = False
    every = [page for page in PAGES if page != "reports"]
    for name in every if "all" in arguments.pages else arguments.pages:
        before = read(name)
        after = rewritten(before, PAGES[name][1]())
        differ = differ or before != after
        if not arguments.check:
            write(name, after)
        result = "as measured" if before == after else "differs" if arguments.check else "written"
        sys.stdout.write(f"{name}: {result}\n")
    return int(arguments.check and differ)


if __name__ == "__main__":
    sys.exit(main())
