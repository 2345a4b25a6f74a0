import ast
import subprocess
import sys
from pathlib import Path

import pytest

import ldprecover_client
from ldprecover_client import errors

NAMES = [
    name
    for name, value in vars(errors).items()
    if isinstance(value, type) and value.__module__ == errors.__name__
]
MODULES = sorted(Path(ldprecover_client.__file__).parent.glob("*.py"))


def test_every_public_name_is_there_and_belongs_to_the_module_it_is_said_to():
    for name in ldprecover_client.__all__:
        assert getattr(ldprecover_client, name) is not None
    assert set(ldprecover_client.__all__) <= set(dir(ldprecover_client))


def test_every_error_is_public_and_below_one_root():
    assert set(NAMES) <= set(ldprecover_client.__all__)
    for name in NAMES:
        assert issubclass(getattr(errors, name), errors.ClientError)


def test_the_tree_of_errors_is_drawn_as_it_is():
    drawing = errors.__doc__
    for name in NAMES:
        parents = [
            base.__name__ for base in getattr(errors, name).__mro__[1:] if base.__name__ in NAMES
        ]
        assert drawing.index(name) > max((drawing.index(parent) for parent in parents), default=0)


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        ldprecover_client.nonsense  # noqa: B018


def test_importing_the_package_loads_neither_numpy_nor_the_http_library():
    code = (
        "import sys, ldprecover_client; print(sorted({'numpy', 'httpx', 'rich'} & "
        "set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout == "[]\n"


def test_one_module_knows_the_http_library():
    def imports(path):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield str(node.module).partition(".")[0]

    assert [path.name for path in MODULES if "httpx" in imports(path)] == ["http.py"]


def test_public_names_are_listed_in_order():
    """As the linter sorts them: constants, classes, functions."""
    names = ldprecover_client.__all__
    kinds = [0 if name.isupper() else 1 if name[0].isupper() else 2 for name in names]
    assert list(zip(kinds, names, strict=True)) == sorted(zip(kinds, names, strict=True))
