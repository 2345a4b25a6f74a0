"""Check that only the protocols tell protocols apart by name: `python tools/protocol_names.py`.

Comparisons, tables and type checks with a protocol's name or class are faults outside
`ldprecover.protocols`. Prints each, and exits with 1 if there is one.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from ldprecover.protocols import PROTOCOLS

PACKAGES = ("core", "interface", "cluster", "client", "attacker", "server", "cli")
MEASURED = ("experiments", "bench", "docs/scripts")  # they have tables of what was measured
HOME = "core/ldprecover/protocols/"
CLASSES = {kind.__name__ for kind in PROTOCOLS.values()}


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
                parts, is_fault = [kinds], True
            case ast.Compare(left=left, comparators=others):
                parts, is_fault = [left, *others], True
            case ast.MatchValue(value=part) | ast.MatchClass(cls=part):
                parts, is_fault = [part], True
            case ast.Dict(keys=keys):
                parts, is_fault = [key for key in keys if key], tables
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
                parts = [part for part in parts if isinstance(part, ast.Name | ast.Attribute)]
                is_fault = sum(map(names_a_protocol, parts)) > 1
            case _:
                continue
        if is_fault and any(map(names_a_protocol, parts)):
            yield node


def names_a_protocol(node: ast.expr) -> bool:
    """Return whether an expression is or contains the name or class of a protocol."""
    match node:
        case ast.Constant(value=str(name)):
            return name in PROTOCOLS
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in CLASSES
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            return any(map(names_a_protocol, parts))
        case ast.BinOp(left=left, right=right):
            return names_a_protocol(left) or names_a_protocol(right)
    return False


if __name__ == "__main__":
    sys.exit(main())
