"""Write the tables of the pages anew: those that are measured, and those that the server's own are
made into.

    python docs/scripts/tables.py             all pages, some minutes: hundreds of thousands of
    users report python docs/scripts/tables.py settings    one page python docs/scripts/tables.py
    --check     writes nothing, and fails where a page is not what is measured

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
import methods_table
import quarantine_table
import recovery_table
import reference_tables
import reproduction_tables
from reproduction_means import KEPT, Means

DOCS = Path(__file__).parent.parent
_TABLE = re.compile(r"^\|.*(?:\n\|.*)+", re.MULTILINE)
_FIRST_WORDS = 5

PAGES: dict[str, tuple[list[str], Callable[[], Iterable[str]]]] = {
    "attacks": (
        ["measurements/attacks.md"],
        lambda: chain(
            attack_table.tables(attack_table.DEFAULT),
            quarantine_table.tables(quarantine_table.DEFAULT),
        ),
    ),
    "evaluation": (["measurements/evaluation.md"], advice_table.printed),
    "metrics": (["reference/metrics.md"], lambda: [reference_tables.metrics_table()]),
    "recovery": (
        ["explanation/recovery.md", "measurements/recovery.md"],
        lambda: chain(
            recovery_table.tables(recovery_table.DEFAULT),
            methods_table.tables(methods_table.DEFAULT),
        ),
    ),
    "reproduction": (
        ["measurements/reproduction.md"],
        lambda: reproduction_tables.tables(Means(KEPT)),
    ),
    "settings": (["reference/settings.md"], lambda: [reference_tables.settings_table()]),
    "unmixing": (["explanation/unmixing.md"], canary_table.printed),
}
"""A name to its pages and what is printed for them. Of tables with one header the first printed is
the first there.
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
    """Return a page with what is printed in its places. Raises LookupError for what has no place on
    the page.
    """
    tables: dict[str, Iterator[re.Match[str]]] = {}
    places: list[tuple[int, int, str]] = []
    for each in printed:
        new = each.strip()
        if new.startswith("|"):
            header = _squeezed(new.partition("\n")[0])
            same = (
                found
                for found in _TABLE.finditer(text)
                if _squeezed(found[0].partition("\n")[0]) == header
            )
            place = next(tables.setdefault(header, same), None)
        else:
            start = r"\s+".join(map(re.escape, new.split()[:_FIRST_WORDS]))
            place = re.search(rf"^{start}.*(?:\n.+)*", text, re.MULTILINE)
            new = textwrap.fill(new, 120, break_long_words=False, break_on_hyphens=False)
        if place is None:
            raise LookupError(f"the page has no place for this:\n\n{new}")
        if _squeezed(place[0]) != _squeezed(
            new
        ):  # what only its lines differ in stays as it was set
            places.append((place.start(), place.end(), new))
    for first, end, new in sorted(places, reverse=True):
        text = text[:first] + new + text[end:]
    return text


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def main() -> int:
    """Write the pages, or check them; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pages", nargs="*", metavar="PAGE", help=", ".join(PAGES))
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit with 1 where something differs"
    )
    asked = parser.parse_args()
    unknown = set(asked.pages) - PAGES.keys()
    if unknown:
        parser.error(f"no page has measured tables and is called {', '.join(sorted(unknown))}")
    differ = False
    for name in asked.pages or PAGES:
        before = read(name)
        after = rewritten(before, PAGES[name][1]())
        said = "as measured" if before == after else "differs" if asked.check else "written anew"
        sys.stdout.write(f"{name}: {said}\n")
        differ = differ or before != after
        if not asked.check:
            write(name, after)
    return int(asked.check and differ)


if __name__ == "__main__":
    sys.exit(main())
