"""Check that large dataclasses take their fields by keyword: `python tools/keywords.py`.

A dataclass takes at most five fields by position: two floats that are swapped pass the type
checker. Prints each that takes more, and exits with 1 if there is one.
"""

import ast
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST = 5


def main() -> int:
    """Print each fault; return 1 if there is one."""
    faults = [
        f"{path.relative_to(ROOT)}: {name} takes more than {MOST} fields by position: decorate it "
        f"with kw_only=True, or put `_: KW_ONLY` after some"
        for path in sorted(ROOT.glob("*/ldprecover*/**/*.py"))
        for name in positional(path.read_text())
    ]
    sys.stdout.writelines(f"{fault}\n" for fault in faults)
    return bool(faults)


def positional(text: str) -> Iterator[str]:
    """Yield the names of the dataclasses of a module that take many fields by position."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef):
            decorators = [ast.unparse(each) for each in node.decorator_list]
            annotations = [
                ast.unparse(each.annotation)
                for each in node.body
                if isinstance(each, ast.AnnAssign)
                and "init=False" not in ast.unparse(each)
                and "ClassVar" not in ast.unparse(each.annotation)
            ]
            positions = [*takewhile(lambda each: each != "KW_ONLY", annotations)]
            is_dataclass = any(each.startswith("dataclass") for each in decorators)
            is_keyword_only = any("kw_only=True" in each for each in decorators)
            if is_dataclass and not is_keyword_only and len(positions) > MOST:
                yield node.name


if __name__ == "__main__":
    sys.exit(main())
