"""What a person is told to do next must be what helps: the right key, the right URL, the right
package.
"""

import os
import subprocess
import sys
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("fields", "command", "scope"),
    [
        ({"access": "key"}, ("simulate", "--users", "5", "--round"), "report"),
        ({"access": "key"}, ("attack", "rpa", "--users", "5", "--round"), "report"),
        ({"read_access": "key"}, ("frequencies", "--round"), "analyst"),
        ({"read_access": "key"}, ("recover", "--round"), "analyst"),
        ({"read_access": "key"}, ("stats",), "analyst"),
        ({}, ("round", "close"), "admin"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
@pytest.mark.parametrize(
    "key", [None, "a-key-that-nobody-made"], ids=["without a key", "with a wrong key"]
)
def test_the_key_that_is_hinted_is_the_one_that_is_needed(
    run: Any,
    server: Any,
    monkeypatch: pytest.MonkeyPatch,
    fields: Any,
    command: Any,
    scope: str,
    key: str | None,
) -> None:
    monkeypatch.setenv("LDPRECOVER_URL", server.url)
    round_ = server.open_round(**fields)
    result = run(*command, round_["name"], *([] if key is None else ["--key", key]))
    assert result.code == 1
    made = (
        "`ldprecover key create`"
        if scope == "admin"
        else f"`ldprecover key create --scope {scope}`"
    )
    assert made in result.error
    if key is None:
        variable = "LDPRECOVER_ADMIN_KEY" if scope == "admin" else "LDPRECOVER_KEY"
        assert f"in --key or {variable}:" in result.error
    else:
        assert "does not know this key" in result.error


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg2"])
@pytest.mark.parametrize(
    "command", [("serve", "--port", "0"), ("migrate",), ("key", "list")], ids=" ".join
)
def test_another_name_of_postgres_is_told_the_right_one(
    run: Any, scheme: str, command: Any
) -> None:
    result = run(*command, "--database-url", f"{scheme}://someone@nowhere.test/db")
    assert result.code == 2
    assert f"write postgresql+psycopg:// for {scheme}://" in result.error


def _bare(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python where nothing is installed but this project and numpy, as `pip install ldprecover`
    leaves it.
    """
    hide = (
        "import sys\n"
        "class Bare:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        known = {'numpy'} | sys.stdlib_module_names | set(sys.builtin_module_names)\n"
        "        if name.partition('.')[0] not in known and not name.startswith('ldprecover'):\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Bare())\n"
    )
    return subprocess.run(
        [sys.executable, "-c", hide + arguments[0]],
        capture_output=True,
        text=True,
        env=dict(os.environ),
        check=False,
    )


def test_a_bare_install_s_command_says_what_it_lacks() -> None:
    done = _bare("from ldprecover_cli import main; main()")
    assert done.returncode == 1
    assert done.stdout == ""
    said = "error: the command needs typer, which is not installed: pip install 'ldprecover[cli]'\n"
    assert done.stderr == said


def test_a_bare_install_has_the_attacks_and_says_what_a_campaign_lacks() -> None:
    done = _bare("import ldprecover_attacker as a; print(a.MGA.name, len(a.ATTACKS)); a.Campaign")
    assert done.stdout.startswith("mga ")
    last = done.stderr.splitlines()[-1]
    assert (
        last == "ImportError: Campaign needs pydantic, which is not installed: pip install "
        "'ldprecover[attacker]'"
    )


def test_a_bare_install_says_what_the_client_lacks() -> None:
    done = _bare("from ldprecover_client import Reporter")
    last = done.stderr.splitlines()[-1]
    assert (
        last == "ImportError: Reporter needs pydantic, which is not installed: pip install "
        "'ldprecover[client]'"
    )


def test_labels_with_commas_stand_apart(
    run: Any, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LDPRECOVER_URL", server.url)
    round_ = server.open_round(items=["New York, NY", "Los Angeles, CA"])
    assert "New York, NY; Los Angeles, CA" in run("round", "show", round_["name"]).out
