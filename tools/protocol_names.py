"""Check that only the protocols tell protocols apart by name: `python tools/protocol_names.py`.

Comparisons, tables and type checks with a protocol's name or class are faults outside
`ldprecover.protocols`. Prints each, and exits with 1 if there is one.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from ldprecover.protocols import PROTOCOLS

PACKAGES = ("core", "interface", "cluster", "client", "attacker", "server", "cli")
MEASURED = ("experiments", "bench", "docs/scripts")  # they have tables of what was measured
HOME = "core/ldprecover/protocols/"
_PROTOCOL = re.compile(
    "|".join(rf"'{name}'|\b{kind.__name__}\b" for name, kind in PROTOCOLS.items())
)


def main() -> int:
    """Print each fault; return 1 if there is one."""
    faults = [
        f"{path}:{node.lineno}: tells protocols apart"
        for folder in PACKAGES + MEASURED
        for path in sorted(Path(folder).rglob("*.py"))
        if not path.as_posix().startswith(HOME)
        for node in comparisons(path.read_text(), tables=folder in PACKAGES)
    ]
    sys.stdout.writelines(f"{fault}\n" for fault in faults)
    return bool(faults)


def comparisons(text: str, *, tables: bool) -> Iterator[ast.expr | ast.pattern]:
    """Yield comparisons with protocols, and tables by protocol."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, kinds]):
                parts = [kinds]
            case ast.Compare():
                parts = [node]
            case ast.MatchValue(value=part) | ast.MatchClass(cls=part):
                parts = [part]
            case ast.Dict(keys=keys) if tables:
                parts = [key for key in keys if key]
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
                parts = [part for part in parts if isinstance(part, ast.Name | ast.Attribute)]
            case _:
                continue
        several = isinstance(node, ast.Tuple | ast.List | ast.Set)
        if sum(map(names_a_protocol, parts)) > several:  # one protocol in a list is no table
            yield node


def names_a_protocol(node: ast.expr) -> bool:
    """Return whether an expression contains the name or class of a protocol."""
    return bool(_PROTOCOL.search(ast.unparse(node)))


if __name__ == "__main__":
    sys.exit(main())
