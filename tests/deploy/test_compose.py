"""The containers of the compose file: their order, keys, networks, rights and limits."""

import re
from typing import Any

import pytest
import yaml
from tests.deploy.tools import ROOT, compose_services

from ldprecover_server import Settings

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
DEMO = {"analyst", "attacker", "demo-keys", "round", "users"}
JOBS = {*DEMO, "address", "keys", "migrate", "secrets"}


def mounted(service: str) -> set[str]:
    """Return the named volumes of a service."""
    volumes = SERVICES[service].get("volumes", [])
    return {volume.split(":")[0] for volume in volumes if not volume.startswith("./")}


def waits_for(service: str) -> dict[str, str]:
    """Return the services that a service waits for, each with its condition."""
    return {
        name: wait["condition"] for name, wait in SERVICES[service].get("depends_on", {}).items()
    }


@pytest.mark.parametrize("command", [["docker-compose"], ["docker", "compose"]], ids=" ".join)
def test_compose_tools_read_the_file(command: list[str]) -> None:
    assert compose_services(ROOT, *command, "--profile", "demo").keys() == SERVICES.keys()


def test_awaited_services_have_health_checks() -> None:
    awaited = {
        name
        for service in SERVICES
        for name, wait in waits_for(service).items()
        if wait == "service_healthy"
    }
    assert awaited == {"postgres", "proxy", "server"}
    for name in awaited:
        assert SERVICES[name]["healthcheck"]["test"][0] == "CMD"
    assert "/readyz" in SERVICES["server"]["healthcheck"]["test"][-1]


def test_analyses_write_to_a_volume_that_the_server_owns() -> None:
    """`/tmp` is memory. A new volume belongs to the owner of its folder in the image."""
    folder = SERVICES["server"]["environment"]["TMPDIR"]
    assert f"analyses:{folder}" in SERVICES["server"]["volumes"]
    folders, owners = DOCKERFILE.split("mkdir -p ")[1].split("chown -R ldprecover:ldprecover ")
    assert folder in folders.split()
    assert folder in owners.splitlines()[0].split()


def test_images_are_named_by_digest() -> None:
    bases = re.findall(r"^ARG BASE=(.*)$", DOCKERFILE, re.MULTILINE)
    images = [service["image"] for service in SERVICES.values() if "build" not in service]
    assert len(images) == 2
    assert all(re.fullmatch(r"[^@]+@sha256:[0-9a-f]{64}", image) for image in bases + images)


def test_only_servers_are_restarted() -> None:
    policies = {name: service["restart"] for name, service in SERVICES.items()}
    assert policies == {name: "no" if name in JOBS else "unless-stopped" for name in SERVICES}


def test_only_the_proxy_is_published_locally() -> None:
    assert {name: service["ports"] for name, service in SERVICES.items() if "ports" in service} == {
        "proxy": ["127.0.0.1:${LDPRECOVER_PORT:-8000}:8000"]
    }


def test_each_part_of_the_demo_has_one_key() -> None:
    keys = {name: mounted(name) for name in ("round", "users", "attacker", "analyst")}
    assert keys == {
        "round": {"admin-key"},
        "users": {"report-key"},
        "attacker": {"report-key"},
        "analyst": {"analyst-key"},
    }
    assert {name for name in SERVICES if "database-secret" in mounted(name)} == {
        "secrets",
        "postgres",
        "migrate",
        "keys",
        "demo-keys",
        "server",
    }


def test_only_makers_of_secrets_may_write_them() -> None:
    for name, service in SERVICES.items():
        writable = {v.split(":")[0] for v in service.get("volumes", []) if not v.endswith(":ro")}
        assert writable == {
            "secrets": {"database-secret"},
            "keys": {"admin-key"},
            "demo-keys": {"report-key", "analyst-key"},
            "postgres": {"database"},
            "server": {"analyses"},
            "proxy": {"bodies"},
        }.get(name, set())


def test_down_v_removes_every_volume() -> None:
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


def test_every_variable_has_a_default() -> None:
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    variables = re.findall(r"(?<!\$)\$\{?\w[^}\n]*\}?", text)
    assert variables
    assert all(re.fullmatch(r"\$\{LDPRECOVER_\w+:-[^}]+\}", variable) for variable in variables), (
        variables
    )


def test_only_the_proxy_reaches_the_server() -> None:
    networks = {name: set(service.get("networks", ())) for name, service in SERVICES.items()}
    frontend, backend, data = {"frontend"}, {"backend"}, {"data"}
    assert networks == {
        "secrets": set(),
        "address": set(),
        **dict.fromkeys(("postgres", "migrate", "keys", "demo-keys"), data),
        "server": backend | data,
        "proxy": frontend | backend,
        **dict.fromkeys(("round", "users", "attacker", "analyst"), frontend),
    }
    assert all(SERVICES[name]["network_mode"] == "none" for name in ("secrets", "address"))
    settings = {
        name: bool((net or {}).get("internal")) for name, net in COMPOSE["networks"].items()
    }
    assert settings == {"frontend": False, "backend": True, "data": True}


def test_server_has_time_to_stop() -> None:
    seconds = Settings.model_fields["shutdown_seconds"].default
    assert SERVICES["server"]["stop_grace_period"] == "1m"
    assert seconds + 15 < 60


def test_containers_have_few_rights() -> None:
    for service in SERVICES.values():
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert "privileged" not in service
        assert "user" not in service, "the image says who runs it"
    ours = [service for service in SERVICES.values() if service["image"] == "ldprecover"]
    assert len(ours) == len(SERVICES) - 2
    assert SERVICES["proxy"]["read_only"] is True
    for service in ours:
        assert service["read_only"] is True
        assert service["tmpfs"] == ["/tmp"]
    may = {name: service["cap_add"] for name, service in SERVICES.items() if "cap_add" in service}
    assert may == {
        "postgres": ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"],
        "proxy": ["CHOWN", "SETGID", "SETUID"],
    }
