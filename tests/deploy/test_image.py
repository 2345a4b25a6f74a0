"""The image as its Dockerfile describes it."""

import json
import re
import socket
import subprocess
import sys
import tomllib

import pytest
import yaml
from tests.deploy.tools import ROOT

TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def instructions() -> list[tuple[str, str]]:
    """Return each instruction of the Dockerfile with its arguments on one line."""
    lines = "\n".join(line for line in TEXT.splitlines() if not line.startswith("#")).replace(
        "\\\n", " "
    )
    split = (line.split(maxsplit=1) for line in lines.splitlines() if line.strip())
    return [(name, " ".join(arguments.split())) for name, arguments in split]


def arguments_of(name: str) -> list[str]:
    return [arguments for instruction, arguments in instructions() if instruction == name]


def final_stage() -> list[tuple[str, str]]:
    every = instructions()
    return every[max(i for i, (name, _) in enumerate(every) if name == "FROM") :]


def test_runs_as_an_unprivileged_user() -> None:
    users = [arguments for name, arguments in final_stage() if name == "USER"]
    assert len(users) == 1
    assert re.fullmatch(r"[1-9]\d{4}:[1-9]\d{4}", users[0])
    after = [name for name, _ in final_stage()][[name for name, _ in final_stage()].index("USER") :]
    assert not {"RUN", "COPY", "ADD"} & set(after)


def health_checks() -> list[str]:
    """Return the programs of the health checks of the image and of the compose file's server."""
    (image,) = arguments_of("HEALTHCHECK")
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    checks = [
        json.loads(image.partition(" CMD ")[2]),
        compose["services"]["server"]["healthcheck"]["test"],
    ]
    return [check[-1] for check in checks]


@pytest.mark.parametrize("program", health_checks(), ids=["image", "compose"])
def test_health_check_asks_the_server_and_no_proxy(program: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)
        port = str(listener.getsockname()[1])
        environment = {"LDPRECOVER_PORT": port, "http_proxy": "http://127.0.0.1:1"}
        if "LDPRECOVER_PORT" not in program:
            program = program.replace("8000", port)
        command = [sys.executable, "-c", program]
        with subprocess.Popen(command, env=environment) as process, listener.accept()[0] as client:
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    assert process.returncode == 0


def test_serve_with_options_listens_outside_the_container() -> None:
    assert any("LDPRECOVER_HOST=0.0.0.0" in arguments for arguments in arguments_of("ENV"))
    assert arguments_of("CMD") == ['["serve"]']


def test_installs_only_hashed_files_and_our_wheel() -> None:
    locked: list[str] = []
    own: list[str] = []
    for run in (run for run in arguments_of("RUN") if " install " in run):
        (own if run.endswith("/wheels/*.whl") else locked).append(run)
    assert len(locked) == 2
    assert all(
        re.search(r"--no-deps --require-hashes --requirement /locks/\S+\.lock$", run)
        for run in locked
    )
    assert len(own) == 1
    assert "--no-index --no-deps" in own[0]


def test_no_address_and_no_secret_is_in_it() -> None:
    assert not re.findall(r"https?://", TEXT)
    names = [
        word.partition("=")[0]
        for name in ("ENV", "ARG")
        for words in arguments_of(name)
        for word in words.split()
    ]
    assert not any(re.search(r"KEY|PASSWORD|SECRET|TOKEN|INDEX", name) for name in names)


def test_build_context_is_what_the_wheel_needs() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    packages = [package.partition("/")[0] for package in wheel["packages"]]
    texts = {"README.md", "LICENSE", "NOTICE.md"}
    hook = project["tool"]["hatch"]["metadata"]["hooks"]["custom"]["path"]
    expected = {*packages, *texts, "pyproject.toml", "deploy/*.lock", hook}
    assert {rule[1:] for rule in rules if rule.startswith("!")} == expected
