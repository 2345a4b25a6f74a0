"""Variables of the environment that are no settings: misspelt ones are refused, all others are not
ours.
"""

import re
import traceback
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from ldprecover_server import ConfigurationError, Settings

MARK = "Mark" * 4
ROOT = Path(__file__).parents[2]
READ_BY_OTHERS = {
    name
    for folder in ("attacker", "cli", "client", "core", "deploy", "docs", "experiments", "server")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".py", ".md", ".service", ".yml"}
    for name in re.findall(r"\bLDPRECOVER_[A-Z_]*[A-Z]\b", path.read_text(encoding="utf-8"))
}
SETTINGS = {f"LDPRECOVER_{name.upper()}" for name in Settings.model_fields}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("LDPRECOVER_WORKER", "LDPRECOVER_WORKERS"),
        ("LDPRECOVER_DATABASE", "LDPRECOVER_DATABASE_URL"),
        ("LDPRECOVER_ADMINKEY", "LDPRECOVER_ADMIN_KEY"),
        ("LDPRECOVER_ADMIN_KEY_FILE", "LDPRECOVER_ADMIN_KEY"),
        ("LDPRECOVER_ANALYSIS", "LDPRECOVER_ANALYSES"),
        ("ldprecover_max_body_byte", "LDPRECOVER_MAX_BODY_BYTES"),
    ],
)
def test_misspelt_setting_is_an_error_with_a_suggestion(
    monkeypatch: pytest.MonkeyPatch, name: str, meant: str
) -> None:
    monkeypatch.setenv(name, "1")
    with pytest.raises(
        ConfigurationError, match=rf"^{name.upper()} is not a setting; did you mean {meant}\?$"
    ):
        Settings()


def test_variables_of_other_components_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that are to come: their names are found in the sources."""
    assert {"LDPRECOVER_KERNELS", "LDPRECOVER_URL", "LDPRECOVER_KEY"} <= READ_BY_OTHERS
    for name in READ_BY_OTHERS - SETTINGS:
        monkeypatch.setenv(name, "1")
    assert Settings() == Settings(host="127.0.0.1")


@pytest.mark.parametrize("name", ["SERVICE_HOST", "PORT_8000_TCP", "HOSTNAME", "VERSION"])
def test_unrelated_variables_pass(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Kubernetes sets the first ones in every container beside a service of this name."""
    without = Settings()
    monkeypatch.setenv(f"LDPRECOVER_{name}", "tcp://10.0.0.1:8000")
    assert Settings() == without


@pytest.mark.parametrize(
    "wrong",
    [
        *({name: MARK} for name in Settings.model_fields if name not in ("host", "plugins")),
        {"cors_origins": f"https://u:{MARK}@h"},
        {"allowed_hosts": f"u:{MARK}@h"},
        {"plugins": f"[{MARK}"},
        {"database_ur": MARK},
    ],
    ids=str,
)
def test_settings_and_their_errors_show_no_secret(wrong: dict[str, Any]) -> None:
    try:
        shown = repr(Settings(**wrong))
    except ValidationError as error:
        shown = "".join(traceback.format_exception(error))
    assert next(iter(wrong)) in shown or "database_url" in wrong
    assert MARK not in shown


@pytest.mark.parametrize("end", ["\n", "\r\n", " ", "\t"])
def test_white_space_at_the_ends_is_no_part_of_a_setting(
    monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """No header could carry such a key, and no proxy would name such a host."""
    monkeypatch.setenv("LDPRECOVER_ADMIN_KEY", f" {MARK}{end}")
    monkeypatch.setenv("LDPRECOVER_DATABASE_URL", f" sqlite:///x.db{end}")
    monkeypatch.setenv("LDPRECOVER_HOST", f"::1{end}")
    settings = Settings()
    assert (settings.secret_key, settings.database_url) == (MARK, "sqlite:///x.db")
    assert settings.is_local
    monkeypatch.setenv("LDPRECOVER_ADMIN_KEY", MARK[1:] + end)
    with pytest.raises(ValidationError, match="at least 16"):
        Settings()
