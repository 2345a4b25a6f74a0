"""Run the nearest tests on mutants of the modules in tests/mutation.toml: `make mutation`.

A mutant differs from its module in one number, term, factor, comparison, condition, limit, call or
returned value. A sample, drawn by a seed, is tested in a copy of the tree. Prints the mutants that
survive, and exits with 1 unless tests/mutation.toml gives the reason of each.
"""

import ast
import os
import random
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
_SKIPPED = ("annotation", "returns", "decorator_list")
_PAIRS = "min max minimum maximum floor ceil argmin argmax Lt LtE Gt GtE Eq NotEq Is IsNot In NotIn"
_OPPOSITES = dict(zip(_PAIRS.split()[::2], _PAIRS.split()[1::2], strict=True))
_OPPOSITES |= {other: name for name, other in _OPPOSITES.items()}
_DROPPED = {*_OPPOSITES, "abs", "clip", "exp", "expm1", "log", "log1p", "rint", "round", "sqrt"}

_SPARE_SECONDS = 30

Change = tuple[ast.AST, str, Any]
"""A node, its field, and the new value of this."""


def main() -> int:
    """Test a sample; return 1 if a mutant survives without a reason."""
    number = int(os.environ.get("MUTANTS") or 60)
    seed = int(os.environ.get("SEED") or secrets.randbelow(10**6))
    table = tomllib.loads((ROOT / "tests" / "mutation.toml").read_text())
    reasons = {line for lines in table["survivors"].values() for line in lines}
    every = [
        (file.relative_to(ROOT), tests, tree, change)
        for pattern, tests in table["tests"].items()
        for file in sorted(ROOT.glob(pattern))
        for tree in [ast.parse(file.read_text())]
        for change in changes(tree)
    ]
    sample = random.Random(seed).sample(every, number)
    print(f"{number} of {len(every):,} mutants, SEED={seed}", flush=True)
    survivors = 0
    with tempfile.TemporaryDirectory() as folder:
        ignored = shutil.ignore_patterns(".*", "node_modules", "_build")
        copy = shutil.copytree(ROOT, Path(folder, "copy"), ignore=ignored)
        limits = {}
        for tests in {tests for _, tests, _, _ in sample}:
            began = time.monotonic()
            if not _pass(copy, tests, None):
                sys.exit(f"{tests} fails without a mutant")
            limits[tests] = _SPARE_SECONDS + 5 * (time.monotonic() - began)
        for name, tests, tree, change in sample:
            text = (copy / name).read_text()
            mutant, line = apply(tree, change)
            (copy / name).write_text(mutant)
            if (
                _pass(copy, tests, limits[tests])
                and not {line, line.partition(" => ")[0]} & reasons
            ):
                survivors += 1
                print(f"{name}\n  {line}", flush=True)
            (copy / name).write_text(text)
    print(f"{survivors} survive without a reason")
    return int(survivors > 0)


def apply(tree: ast.Module, change: Change) -> tuple[str, str]:
    """Return the text of a module with a change, and the line before and after."""
    before = ast.unparse(tree)
    node, name, value = change
    original = getattr(node, name)
    setattr(node, name, value)
    after = ast.unparse(tree)
    setattr(node, name, original)
    lines = zip(before.splitlines(), after.splitlines(), strict=True)
    return after, next((f"{x.strip()} => {y.strip()}" for x, y in lines if x != y), "")


def changes(node: ast.AST) -> Iterator[Change]:
    """Yield all changes below a node, but those of types and messages."""
    for name, value in ast.iter_fields(node):
        for i, child in enumerate(value if isinstance(value, list) else [value]):
            is_message = isinstance(child, ast.Raise | ast.Assert | ast.JoinedStr)
            if isinstance(child, ast.AST) and name not in _SKIPPED and not is_message:
                for other in _replacements(child):
                    is_list = isinstance(value, list)
                    yield node, name, [*value[:i], other, *value[i + 1 :]] if is_list else other
                yield from changes(child)


def _replacements(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield from map(ast.Constant, sorted({value + 1, abs(value - 1)}))
        case ast.Constant(value=float(value)):
            yield from map(ast.Constant, (2 * value or 1.0, value / 2 or -1.0))
        case ast.BinOp(left=left, right=right) if not isinstance(left, ast.JoinedStr):
            yield from (left, right)
        case ast.UnaryOp(operand=operand):
            yield operand
        case ast.BoolOp(op=op, values=values):
            yield from (ast.BoolOp(op, [x for x in values if x is not each]) for each in values)
        case ast.Compare(left=left, ops=[op], comparators=right):
            yield ast.Compare(left, [getattr(ast, _OPPOSITES[type(op).__name__])()], right)
        case ast.IfExp(body=body, orelse=other):
            yield from (body, other)
        case ast.Return(value=ast.Tuple(elts=[first, second])):
            yield ast.Return(ast.Tuple([second, first]))
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[first, *_]):
            if name in _DROPPED:
                yield first
        case ast.Name(id=name) if name in _OPPOSITES:
            yield ast.Name(_OPPOSITES[name])
        case ast.Attribute(value=value, attr=name) if name in _OPPOSITES:
            yield ast.Attribute(value, _OPPOSITES[name])


def _pass(copy: Path, tests: str, seconds: float | None) -> bool:
    options = ["-B", "-m", "pytest", "-qx", "--hypothesis-seed=0", "-m", "not statistical"]
    path = {"PYTHONPATH": ":".join(map(str, copy.iterdir()))}
    try:
        run = subprocess.run(
            [sys.executable, *options, *tests.split()],
            cwd=copy,
            env=os.environ | path,
            stdout=subprocess.DEVNULL,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:  # an endless loop shows the mutant
        return False
    return run.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
