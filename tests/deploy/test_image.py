"""The image as its Dockerfile describes it."""

import re
import tomllib

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


def test_final_stage_copies_only_the_environment() -> None:
    copies = [arguments for name, arguments in final_stage() if name == "COPY"]
    assert copies == ["--from=environment /opt/ldprecover /opt/ldprecover"]
    assert not any("pip" in arguments for name, arguments in final_stage() if name == "RUN")


def test_any_builder_can_build_it() -> None:
    """The classic builder knows neither mounts, nor here-documents, nor --chmod and --link of
    COPY.
    """
    for name, arguments in instructions():
        assert not re.search(r"--(mount|chmod|link|security|network)\b|<<", arguments), (
            f"{name} {arguments}"
        )


def test_no_address_and_no_secret_is_in_it() -> None:
    assert set(re.findall(r"https?://[^/'\"\s]+", TEXT)) == {"http://127.0.0.1:8000"}
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
    expected = {*packages, "pyproject.toml", "deploy/*.lock", "README.md", "LICENSE"}
    assert {rule[1:] for rule in rules if rule.startswith("!")} == expected
