"""The pinned versions are exact, one of each, with the hashes of their files, and what
pyproject.toml asks for.
"""

import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tests.deploy.tools import ROOT

PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT, GROUPS = PYPROJECT["project"], PYPROJECT["dependency-groups"]
LOCK = "requirements.lock"
WHOLE = ["all", "experiments", "group test", "group check", "group build"]
PARTS = {
    "tests/quick.lock": ["group quick"],
    "deploy/build.lock": ["group build"],
    "deploy/command.lock": ["cli", "fast", "group build"],
    "deploy/image.lock": ["cli", "postgres"],
    "deploy/image-fast.lock": ["cli", "postgres", "fast", "certify"],
}


def pinned(lock: str) -> list[tuple[Requirement, frozenset[str]]]:
    """Return each pin of a lock with the hashes of its files; any other line is an error."""
    pins = []
    for line in (ROOT / lock).read_text().replace("\\\n", " ").splitlines():
        pin, *hashes = re.split(r"\s+--hash=sha256:(?=[0-9a-f]{64}\b)", line.rstrip())
        pins.append((Requirement(pin), frozenset(hashes)))
    return pins


def requirements_of(name: str) -> Iterator[Requirement]:
    """Yield what an extra or a dependency group asks for, and those that it includes."""
    group = name.removeprefix("group ")
    for line in GROUPS[group] if group != name else PROJECT["optional-dependencies"][name]:
        if isinstance(line, dict):
            yield from requirements_of(f"group {line['include-group']}")
            continue
        requirement = Requirement(line)
        if requirement.name == PROJECT["name"]:
            for extra in requirement.extras:
                yield from requirements_of(extra)
        else:
            yield requirement


@pytest.mark.parametrize("lock", [LOCK, *PARTS])
def test_every_pin_is_an_exact_version_with_hashes(lock: str) -> None:
    pins = pinned(lock)
    for pin, hashes in pins:
        (version,) = pin.specifier
        assert version.operator == "==", pin
        assert "*" not in version.version, pin
        assert pin.url is None, pin
        assert hashes, pin
        assert all(re.fullmatch("[0-9a-f]{64}", hash) for hash in hashes), pin
    times = Counter((canonicalize_name(pin.name), str(pin.marker)) for pin, _ in pins)
    assert set(times.values()) == {1}


@pytest.mark.parametrize("lock", PARTS)
def test_each_lock_is_part_of_the_whole_lock(lock: str) -> None:
    def files(lock: str) -> dict[str, frozenset[str]]:
        return {f"{pin.name}{pin.specifier}": hashes for pin, hashes in pinned(lock)}

    part = files(lock)
    assert part
    assert part.items() <= files(LOCK).items()


@pytest.mark.parametrize(("lock", "extras"), [(LOCK, WHOLE), *PARTS.items()])
def test_every_requirement_is_pinned_within_its_range(lock: str, extras: list[str]) -> None:
    versions = defaultdict[str, list[str]](list)
    for pin, _ in pinned(lock):
        versions[canonicalize_name(pin.name)] += [specifier.version for specifier in pin.specifier]
    requirements = [
        *map(Requirement, PROJECT["dependencies"]),
        *(requirement for extra in extras for requirement in requirements_of(extra)),
    ]
    assert len(requirements) > len(extras)
    missing = [str(r) for r in requirements if canonicalize_name(r.name) not in versions]
    assert missing == [], "make lock pins them"
    outside = [
        str(r)
        for r in requirements
        if not all(map(r.specifier.contains, versions[canonicalize_name(r.name)]))
    ]
    assert outside == []


def test_what_builds_the_project_is_pinned() -> None:
    """Installed with no build isolation, so that the newest release of its builder has no say."""
    assert set(PYPROJECT["build-system"]["requires"]) <= set(GROUPS["build"])
    for file in ("Makefile", "Dockerfile"):
        text = (ROOT / file).read_text().replace("\\\n", " ")
        ours = [line for line in text.splitlines() if re.search(r"pip wheel|--editable \.$", line)]
        assert ours
        assert all("--no-deps" in line and "--no-build-isolation" in line for line in ours), file
