import subprocess
import sys

import ldprecover_client
from ldprecover_client import errors

ERRORS = [
    (name, value)
    for name, value in vars(errors).items()
    if isinstance(value, type) and value.__module__ == errors.__name__
]


def test_dir_has_every_public_name():
    assert set(ldprecover_client.__all__) <= set(dir(ldprecover_client))


def test_every_error_is_public_and_a_client_error():
    for name, error in ERRORS:
        assert name in ldprecover_client.__all__
        assert issubclass(error, errors.ClientError | Warning)


def test_import_loads_neither_numpy_nor_httpx():
    code = (
        "import sys, ldprecover_client; print(sorted({'numpy', 'httpx', 'rich'} & "
        "set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout == "[]\n"
