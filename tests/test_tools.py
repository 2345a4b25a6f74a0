"""Tests of the checks in `tools`."""

import ast
import tomllib

import keywords
import layers
import mutation
import pytest
from phrases import HERE, check, read_list
from scope import verdict

PHRASES, NAMES = read_list((HERE / "phrases.txt").read_text())


@pytest.mark.parametrize(
    ("file", "text", "hits"),
    [
        (
            "a.py",
            'def f(given: int) -> None:\n    """It goes\n    on."""\n',
            ["given", "goes on"],  # phrases: quoted
        ),
        (
            "a.py",
            "goes = on = f(\"a room of its \" 'own')  # anew\n",  # phrases: quoted
            ["of its own", "anew"],  # phrases: quoted
        ),
        ("a.py", "_told = 1\n", ["told"]),
        ("a.py", "if a is None: pass  # phrases: quoted, anew\n", []),
        ("a.js", 'const anew = "at once"; // not at\n// once\n', ["at once"]),  # phrases: quoted
        (
            "a.md",
            "Said anew, `not anew`.\n```\nanew\n```\n" + "long " * 21,  # phrases: quoted
            ["anew", "105 columns"],  # phrases: quoted
        ),
    ],
)
def test_hits(file: str, text: str, hits: list[str]) -> None:
    result = check(file, text, PHRASES, NAMES)
    assert sorted(phrase for _, phrase, _ in result) == sorted(hits)


def test_line_of_hit_across_lines() -> None:
    assert check("a.md", "\n\nat\nonce", PHRASES, NAMES) == [
        (3, "at once", "immediately, together, or in one step")  # phrases: quoted
    ]


@pytest.mark.parametrize(
    ("number", "target", "expected"),
    [
        (100, 100, ""),
        (102, 100, "ABOVE"),
        (103, 100, "TOO MANY"),
        (31, 31, ""),
        (32, 31, "TOO MANY"),  # of small numbers not even one more
    ],
)
def test_size_may_exceed_target_by_2_percent(number: int, target: int, expected: str) -> None:
    assert verdict(number, target) == expected


def test_finds_each_kind_of_import_fault() -> None:
    rows = [["", "`a`", "", "`b`"], ["", "`b`", "", "`a`"]]
    assert len([*layers.package_faults(rows, {})]) == 1
    rows[1][3] = "numpy"
    assert len([*layers.package_faults(rows, {"a.y": {"b.x"}, "b.x": {"a.y"}})]) == 1
    server = {f"{layers.SERVER}.low": {f"{layers.SERVER}.high.x"}, f"{layers.SERVER}.new": set()}
    assert len([*layers.module_faults(layers.SERVER, [["`high`"], ["`low`"]], server)]) == 2
    assert len([*layers.library_faults({"ldprecover.x": {"numpy", "scipy", "json"}})]) == 1
    assert [*layers.circles({"a": {"b"}, "b": {"a"}})]


def test_keywords_names_dataclass_of_six_positions() -> None:
    fields = "".join(f"    x{i}: int\n" for i in range(6))
    assert [*keywords.positional(f"@dataclass(frozen=True)\nclass A:\n{fields}")] == ["A"]
    for text in (
        f"@dataclass(kw_only=True)\nclass A:\n{fields}",
        f"@dataclass\nclass A:\n    _: KW_ONLY\n{fields}",
        f"@dataclass\nclass A:\n    y: ClassVar[int]\n{fields.partition('    x5')[0]}",
        f"class A:\n{fields}",
    ):
        assert not [*keywords.positional(text)], text


@pytest.mark.parametrize(
    ("line", "mutants"),
    [
        ("x = a + 2", ["x = a", "x = 2", "x = a + 1", "x = a + 3"]),
        ("x = -0.5", ["x = 0.5", "x = -1.0", "x = -0.25"]),
        (
            "if a <= b and (not c): pass",
            ["if not c:", "if a <= b:", "if a < b and (not c):", "if a <= b and c:"],
        ),
        ("x = max(a.min(), y)", ["x = a.min()", "x = min(a.min(), y)", "x = max(a.max(), y)"]),
        ("x: int | None = b if c is None else a", ["= b", "= a", "= b if c is not None else a"]),
        ("def f() -> int | None: return a, b", ["return (b, a)"]),
        ('raise E("a" + b)', []),
        ('x = f"{a + 1}"', []),
    ],
)
def test_mutants_of_a_line(line: str, mutants: list[str]) -> None:
    tree = ast.parse(line)
    changed = [mutation.apply(tree, change)[1] for change in mutation.changes(tree)]
    for mutant in mutants:
        assert any(each.endswith(mutant) for each in changed), (mutant, changed)
    assert len(changed) == len(mutants)


def test_survivors_are_of_lines_in_use() -> None:
    table = tomllib.loads((mutation.ROOT / "tests" / "mutation.toml").read_text())
    modules = [file for pattern in table["tests"] for file in mutation.ROOT.glob(pattern)]
    lines = {
        line.strip()
        for file in modules
        for line in ast.unparse(ast.parse(file.read_text())).splitlines()
    }
    for each in (line for survivors in table["survivors"].values() for line in survivors):
        assert each.partition(" => ")[0] in lines
