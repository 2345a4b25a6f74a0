import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ldprecover_client
from ldprecover_client import errors

ERRORS = [
    (name, value)
    for name, value in vars(errors).items()
    if isinstance(value, type) and value.__module__ == errors.__name__
]
MODULES = sorted(Path(ldprecover_client.__file__).parent.glob("*.py"))


def test_every_public_name_loads():
    for name in ldprecover_client.__all__:
        assert getattr(ldprecover_client, name) is not None
    assert set(ldprecover_client.__all__) <= set(dir(ldprecover_client))


def test_every_error_is_public_and_a_client_error():
    for name, error in ERRORS:
        assert name in ldprecover_client.__all__
        assert issubclass(error, errors.ClientError | Warning)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        ldprecover_client.nonsense  # noqa: B018


def test_import_loads_neither_numpy_nor_httpx():
    code = (
        "import sys, ldprecover_client; print(sorted({'numpy', 'httpx', 'rich'} & "
        "set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout == "[]\n"


def test_one_module_imports_httpx():
    def imports(path: Path) -> Iterator[str]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield str(node.module).partition(".")[0]

    assert [path.name for path in MODULES if "httpx" in imports(path)] == ["_httpx.py"]
