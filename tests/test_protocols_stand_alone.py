"""Only the protocols package compares a protocol with a name or class."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from ldprecover.protocols import PROTOCOLS

ROOT = Path(__file__).parents[1]
SOURCES = (
    "core",
    "interface",
    "cluster",
    "client",
    "server",
    "attacker",
    "cli",
    "experiments",
    "bench",
    "docs/scripts",
)
MEASURED = (
    "experiments",
    "bench",
    "docs/scripts",
)  # they hold what was measured, or printed, of some protocols
NAMES = frozenset(PROTOCOLS)
CLASSES = frozenset(kind.__name__ for kind in PROTOCOLS.values())

HOME = ROOT / "core" / "ldprecover" / "protocols"


def modules() -> list[Path]:
    paths = [path for source in SOURCES for path in sorted((ROOT / source).rglob("*.py"))]
    return [path for path in paths if not path.is_relative_to(HOME)]


def names_a_protocol(node: ast.expr) -> bool:
    """Tell whether an expression is or contains the name or class of a protocol."""
    match node:
        case ast.Constant(value=str(value)):
            return value in NAMES
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in CLASSES
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            return any(map(names_a_protocol, parts))
        case ast.BinOp(left=left, right=right):
            return names_a_protocol(left) or names_a_protocol(right)
    return False


def comparisons(tree: ast.AST, *, tables: bool = True) -> Iterator[ast.AST]:
    """Yield comparisons with protocols, and tables by protocol."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, kinds]) if (
                names_a_protocol(kinds)
            ):
                yield node
            case ast.Compare(left=left, comparators=others) if any(
                map(names_a_protocol, [left, *others])
            ):
                yield node
            case ast.Dict(keys=keys) if tables and any(
                key is not None and names_a_protocol(key) for key in keys
            ):
                yield node
            case ast.MatchValue(value=value) if names_a_protocol(value):
                yield node
            case ast.MatchClass(cls=kind) if names_a_protocol(kind):
                yield node
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
                if (
                    sum(
                        isinstance(part, ast.Name | ast.Attribute) and names_a_protocol(part)
                        for part in parts
                    )
                    > 1
                ):
                    yield node


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_checks_protocol_name(path: Path) -> None:
    tables = not any(path.is_relative_to(ROOT / each) for each in MEASURED)
    nodes = comparisons(ast.parse(path.read_text()), tables=tables)
    assert [f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', '?')}" for node in nodes] == []


@pytest.mark.parametrize(
    "source",
    [
        "isinstance(oracle, OLH)",
        "isinstance(oracle, GRR | OUE)",
        "isinstance(oracle, (protocols.GRR, str))",
        "oracle.protocol == 'olh'",
        "'grr' != protocol",
        "protocol in ('grr', 'oue')",
        "type(oracle) is OUE",
        "{GRR: 1, OUE: 2}[type(oracle)]",
        "{'grr': 1}[protocol]",
        "kinds = (GRR, OUE)",
        "match protocol:\n    case 'olh': pass",
        "match oracle:\n    case OLH(): pass",
    ],
)
def test_every_kind_of_check_is_detected(source: str) -> None:
    assert list(comparisons(ast.parse(source)))


@pytest.mark.parametrize(
    "source", ["OLH(0.5, 10, 3)", "open_round('olh')", "x['olh']", "def f(o: OLH): ..."]
)
def test_naming_protocol_is_no_check(source: str) -> None:
    assert not list(comparisons(ast.parse(source)))
