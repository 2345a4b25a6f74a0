"""Errors name the right key, and the package that an install lacks."""

import subprocess
import sys
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.conftest import ServerProcess


@pytest.mark.parametrize(
    ("fields", "command", "scope"),
    [
        ({"access": "key"}, "sim users --users 5 --seed 1", "report"),
        ({"read_access": "key"}, "result recover", "analyst"),
        ({}, "round close", "admin"),
    ],
)
def test_hint_names_the_scope_of_the_missing_key(
    run: Run,
    server: ServerProcess,
    monkeypatch: pytest.MonkeyPatch,
    fields: dict[str, Any],
    command: str,
    scope: str,
) -> None:
    monkeypatch.setenv("LDPRECOVER_URL", server.url)
    line = f"{command} {server.open_round(**fields)['name']}"
    missing, wrong = run(line).fails(1), run(f"{line} --key a-key-of-nobody").fails(1)
    option = "" if scope == "admin" else f" --scope {scope}"
    variable = "LDPRECOVER_ADMIN_KEY" if scope == "admin" else "LDPRECOVER_KEY"
    assert f"in --key or {variable}:" in missing
    assert "does not know this key" in wrong
    for error in (missing, wrong):
        assert f"`ldprecover admin key create{option}`" in error


_ONLY_NUMPY = """
import sys
class OnlyNumpy:
    def find_spec(self, name, path=None, target=None):
        known = {"numpy"} | sys.stdlib_module_names | set(sys.builtin_module_names)
        if name.partition(".")[0] not in known and not name.startswith("ldprecover"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, OnlyNumpy())
"""
"""Hides all packages but this project and numpy, as `pip install ldprecover` leaves them."""


@pytest.mark.parametrize(
    ("code", "out", "error"),
    [
        (
            "from ldprecover_cli import main; main()",
            "",
            "error: the command needs typer, which is not installed: pip install 'ldprecover[cli]'",
        ),
        (
            "import ldprecover_attacker as a; print(a.MGA.name, len(a.ATTACKS) > 1); a.Campaign",
            "mga True\n",
            (
                "ImportError: Campaign needs pydantic, which is not installed: pip install "
                "'ldprecover[attacker]'"
            ),
        ),
        (
            "from ldprecover_client import Reporter",
            "",
            (
                "ImportError: Reporter needs pydantic, which is not installed: pip install "
                "'ldprecover[client]'"
            ),
        ),
    ],
    ids=["cli", "attacker", "client"],
)
def test_default_install_names_the_missing_extra(code: str, out: str, error: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _ONLY_NUMPY + code], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr.splitlines()[-1]) == (1, out, error)
