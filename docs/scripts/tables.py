"""Write the tables of the pages anew: those that are measured, and those that the server's own are made into.

    python docs/scripts/tables.py             all pages, some minutes: hundreds of thousands of users report
    python docs/scripts/tables.py settings    one page
    python docs/scripts/tables.py --check     writes nothing, and fails where a page is not what is measured

A table is known on its page by its header, a paragraph by its first words.
"""

import argparse
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path

import advice_table
import attack_table
import canary_table
import door_table
import methods_table
import recovery_table
import reference_tables
import reproduction_tables
from reproduction_means import KEPT, Means

__all__ = ["PAGES", "rewritten"]

DOCS = Path(__file__).parent.parent
_TABLE = re.compile(r"^\|.*(?:\n\|.*)+", re.MULTILINE)
_FIRST_WORDS = 5

PAGES: dict[str, Callable[[], Iterable[str]]] = {
    "attacks": lambda: chain(attack_table.tables(attack_table.DEFAULT), door_table.tables(door_table.DEFAULT)),
    "evaluation": advice_table.printed,
    "metrics": lambda: [reference_tables.metrics_table()],
    "recovery": lambda: chain(
        recovery_table.tables(recovery_table.DEFAULT), methods_table.tables(methods_table.DEFAULT)
    ),
    "reproduction": lambda: reproduction_tables.tables(Means(KEPT)),
    "settings": lambda: [reference_tables.settings_table()],
    "unmixing": canary_table.printed,
}
"""Page to what is printed for it. Of tables with one header the first printed is the first on the page."""


def rewritten(text: str, printed: Iterable[str]) -> str:
    """Return a page with what is printed in its places. Raises LookupError for what has no place on the page."""
    tables: dict[str, Iterator[re.Match[str]]] = {}
    places: list[tuple[int, int, str]] = []
    for each in printed:
        new = each.strip()
        if new.startswith("|"):
            header = _squeezed(new.partition("\n")[0])
            same = (found for found in _TABLE.finditer(text) if _squeezed(found[0].partition("\n")[0]) == header)
            place = next(tables.setdefault(header, same), None)
        else:
            start = r"\s+".join(map(re.escape, new.split()[:_FIRST_WORDS]))
            place = re.search(rf"^{start}.*(?:\n.+)*", text, re.MULTILINE)
            new = textwrap.fill(new, 120, break_long_words=False, break_on_hyphens=False)
        if place is None:
            raise LookupError(f"the page has no place for this:\n\n{new}")
        if _squeezed(place[0]) != _squeezed(new):  # what only its lines differ in stays as it was set
            places.append((place.start(), place.end(), new))
    for first, end, new in sorted(places, reverse=True):
        text = text[:first] + new + text[end:]
    return text


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def main() -> int:
    """Write the pages, or check them; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", metavar="PAGE", help=", ".join(PAGES))
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where something differs")
    asked = parser.parse_args()
    unknown = set(asked.pages) - PAGES.keys()
    if unknown:
        parser.error(f"no page has measured tables and is called {', '.join(sorted(unknown))}")
    differ = False
    for name in asked.pages or PAGES:
        file = DOCS / f"{name}.md"
        before = file.read_text(encoding="utf-8")
        after = rewritten(before, PAGES[name]())
        said = "as measured" if before == after else "differs" if asked.check else "written anew"
        sys.stdout.write(f"docs/{name}.md: {said}\n")
        differ = differ or before != after
        if not asked.check:
            file.write_text(after, encoding="utf-8")
    return int(asked.check and differ)


if __name__ == "__main__":
    sys.exit(main())
