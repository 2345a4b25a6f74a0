"""The unit of systemd, by systemd's own judgement and against the server's settings."""

import re
from pathlib import Path

import pytest
from tests.deploy.tools import ROOT, run

from ldprecover_server import Settings

UNIT = ROOT / "deploy" / "systemd" / "ldprecover.service"
OPTIONS = dict(re.findall(r"^(\w+)=(.*)$", UNIT.read_text(encoding="utf-8"), re.MULTILINE))
PROGRAM = "/opt/ldprecover/bin/ldprecover"


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The unit with a program that is there."""
    path = tmp_path / UNIT.name
    path.write_text(UNIT.read_text(encoding="utf-8").replace(PROGRAM, "/bin/true"))
    return path


def test_systemd_takes_every_line_of_the_unit(unit: Path) -> None:
    """It names unknown keys and impossible values, and still succeeds."""
    assert run("systemd-analyze", "verify", unit) == ""


def test_systemd_finds_the_service_hardened(unit: Path) -> None:
    """Of 10: 9.6 is a service without any protection; above 2 the tool fails."""
    assert "exposure level" in run(
        "systemd-analyze", "security", "--offline=true", "--threshold=20", unit
    )


def test_always_restarts_and_has_time_to_stop() -> None:
    assert OPTIONS["ExecStart"] == f"{PROGRAM} serve"
    assert (OPTIONS["Restart"], OPTIONS["StartLimitIntervalSec"]) == ("always", "0")
    assert OPTIONS["OOMPolicy"] == "continue"
    assert int(OPTIONS["TimeoutStopSec"]) > Settings.model_fields["shutdown_seconds"].default + 15


def test_it_has_limits_and_a_folder_of_its_own() -> None:
    assert {"MemoryMax", "TasksMax", "LimitNOFILE"} <= OPTIONS.keys()
    assert OPTIONS["WorkingDirectory"] == f"%S/{OPTIONS['StateDirectory']}"


def test_no_secret_is_in_it_and_what_it_sets_exists() -> None:
    names = set(re.findall(r"LDPRECOVER_[A-Z_]+(?==)", "\n".join(OPTIONS.values())))
    assert names == {"LDPRECOVER_LOG_FORMAT"}
    assert names <= {f"LDPRECOVER_{name.upper()}" for name in Settings.model_fields}
