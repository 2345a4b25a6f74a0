"""The containers as they are described: who waits for whom, who holds which key, and that nothing
secret is in them.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from ldprecover_server import Settings

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]
JOBS = ["analyst", "attacker", "keys", "migrate", "round", "secrets", "users"]


def mounted(service: str) -> set[str]:
    """Return the named volumes of a service."""
    return {volume.split(":")[0] for volume in SERVICES[service].get("volumes", [])}


def waits_for(service: str) -> dict[str, str]:
    """Return the services that a service waits for, each with its condition."""
    return {
        name: wait["condition"] for name, wait in SERVICES[service].get("depends_on", {}).items()
    }


@pytest.mark.parametrize("command", [["docker-compose"], ["docker", "compose"]], ids=" ".join)
def test_the_compose_tools_take_the_file(command: list[str]) -> None:
    if (
        shutil.which(command[0]) is None
        or subprocess.run([*command, "version"], capture_output=True).returncode
    ):
        pytest.skip(f"{' '.join(command)} is not installed")
    unset = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("LDPRECOVER_", "COMPOSE_"))
    }
    ended = subprocess.run(
        [*command, "config"], cwd=ROOT, env=unset, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    assert "variable is not set" not in ended.stderr
    assert yaml.safe_load(ended.stdout)["services"].keys() == SERVICES.keys()


def test_every_service_starts_once_what_it_needs_is_there() -> None:
    done = "service_completed_successfully"
    assert {name: waits_for(name) for name in SERVICES} == {
        "secrets": {},
        "postgres": {"secrets": done},
        "migrate": {"postgres": "service_healthy"},
        "keys": {"migrate": done},
        "server": {"keys": done},
        "round": {"server": "service_healthy"},
        "users": {"round": done},
        "attacker": {"round": done},
        "analyst": {"users": done, "attacker": done},
        "drill": {"analyst": done},
    }


def test_what_others_wait_for_to_be_healthy_has_a_health_check() -> None:
    awaited = {
        name
        for service in SERVICES
        for name, wait in waits_for(service).items()
        if wait == "service_healthy"
    }
    assert awaited == {"postgres", "server"}
    for name in awaited:
        assert SERVICES[name]["healthcheck"]["test"][0] == "CMD"
    assert "/readyz" in SERVICES["server"]["healthcheck"]["test"][-1]


def test_what_serves_comes_back_and_what_is_done_does_not() -> None:
    policies = {name: service["restart"] for name, service in SERVICES.items()}
    assert policies == {name: "no" if name in JOBS else "unless-stopped" for name in SERVICES}


def test_only_the_server_and_the_drill_are_published_and_only_to_this_machine() -> None:
    """The drill lets in those alone who call it by a name of this machine, and by the port that it
    listens on.
    """
    assert {name: service["ports"] for name, service in SERVICES.items() if "ports" in service} == {
        "server": ["127.0.0.1:8000:8000"],
        "drill": ["127.0.0.1:8001:8001"],
    }


def test_the_server_runs_two_processes_unless_told_otherwise() -> None:
    assert SERVICES["server"]["command"][-2:] == ["--workers", "${LDPRECOVER_WORKERS:-2}"]


def test_each_part_of_the_demo_holds_its_own_key_and_nothing_of_the_database() -> None:
    held = {name: mounted(name) for name in ("round", "users", "attacker", "analyst", "drill")}
    assert held == {
        "round": {"admin-key"},
        "users": {"report-key"},
        "attacker": {"report-key"},
        "analyst": {"analyst-key"},
        "drill": {"admin-key"},
    }
    assert {name for name in SERVICES if "database-secret" in mounted(name)} == {
        "secrets",
        "postgres",
        "migrate",
        "keys",
        "server",
    }


def test_only_those_who_make_secrets_may_write_them() -> None:
    for name, service in SERVICES.items():
        writable = {v.split(":")[0] for v in service.get("volumes", []) if not v.endswith(":ro")}
        assert writable == {
            "secrets": {"database-secret"},
            "keys": {"admin-key", "report-key", "analyst-key"},
            "postgres": {"database"},
        }.get(name, set())


def test_every_volume_is_named_so_that_down_v_removes_it() -> None:
    used = set().union(*map(mounted, SERVICES))
    assert used == set(COMPOSE["volumes"])
    assert all(settings is None for settings in COMPOSE["volumes"].values()), (
        "an external volume would stay"
    )


def test_no_secret_is_written_down() -> None:
    for name, service in SERVICES.items():
        for variable, value in service.get("environment", {}).items():
            assert not re.search(r"(PASSWORD|KEY|SECRET)$", variable), f"{name}: {variable}"
            assert not re.search(r"://[^/@]*:[^/@]*@", str(value)), (
                f"{name}: {variable} holds a password"
            )


def test_no_variable_has_to_be_set_beforehand() -> None:
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    variables = re.findall(r"(?<!\$)\$\{?\w[^}\n]*\}?", text)
    assert variables
    assert all(re.fullmatch(r"\$\{LDPRECOVER_\w+:-[^}]+\}", variable) for variable in variables), (
        variables
    )


def test_only_the_server_reaches_both_the_door_and_the_database() -> None:
    networks = {name: set(service.get("networks", ())) for name, service in SERVICES.items()}
    frontend = {"round", "users", "attacker", "analyst", "drill"}
    assert {name for name in SERVICES if networks[name] == {"frontend"}} == frontend
    assert {name for name in SERVICES if networks[name] == {"data"}} == {
        "postgres",
        "migrate",
        "keys",
    }
    assert {name for name in SERVICES if networks[name] == {"frontend", "data"}} == {"server"}
    assert {name for name in SERVICES if not networks[name]} == {"secrets"}
    assert SERVICES["secrets"]["network_mode"] == "none"
    assert {
        name for name, settings in COMPOSE["networks"].items() if (settings or {}).get("internal")
    } == {"data"}


def test_every_container_has_a_limit_of_memory_processes_and_cores() -> None:
    """The cores by quota: compose refuses more `cpus` than the machine has."""
    for name, service in SERVICES.items():
        assert re.fullmatch(r"\d+[mg]", service["mem_limit"]), name
        assert 64 <= service["pids_limit"] <= 1024, name
        assert service["cpu_quota"] in {100_000, 200_000}, name
        assert "cpus" not in service, name


def test_the_server_has_longer_to_stop_than_it_takes() -> None:
    seconds = Settings.model_fields["shutdown_seconds"].default
    assert SERVICES["server"]["stop_grace_period"] == "1m"
    assert seconds + 15 < 60


def test_no_container_has_more_rights_than_it_needs() -> None:
    for service in SERVICES.values():
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert "privileged" not in service
        assert "user" not in service, "the image says who runs it"
    ours = [service for service in SERVICES.values() if service["image"] == "ldprecover"]
    assert len(ours) == len(SERVICES) - 1
    for service in ours:
        assert service["read_only"] is True
        assert service["tmpfs"] == ["/tmp"]
    may = {name: service["cap_add"] for name, service in SERVICES.items() if "cap_add" in service}
    assert may == {"postgres": ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"]}


def test_foreign_images_are_pinned() -> None:
    foreign = {service["image"] for service in SERVICES.values()} - {"ldprecover"}
    assert foreign == {"postgres:17"}
