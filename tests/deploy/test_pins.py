"""The pinned versions are exact, one of each, and what pyproject.toml asks for."""

import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PINS = [Requirement(line) for line in (ROOT / "requirements.lock").read_text().splitlines()]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def wanted(extra: str | None = None) -> Iterator[Requirement]:
    """Yield what the project asks for, and what one of its extras and those that it names do."""
    for line in PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]:
        requirement = Requirement(line)
        if requirement.name == PROJECT["name"]:
            for named in requirement.extras:
                yield from wanted(named)
        else:
            yield requirement


def test_every_pin_is_one_exact_version_from_the_registry() -> None:
    for pin in PINS:
        (version,) = pin.specifier
        assert version.operator == "==", pin
        assert "*" not in version.version, pin
        assert pin.url is None, pin
    times = Counter((canonicalize_name(pin.name), str(pin.marker)) for pin in PINS)
    assert set(times.values()) == {1}


def test_every_requirement_of_the_project_its_tests_and_its_checks_is_pinned_within_its_range() -> None:
    pinned = defaultdict[str, list[str]](list)
    for pin in PINS:
        pinned[canonicalize_name(pin.name)] += [specifier.version for specifier in pin.specifier]
    requirements = [*wanted(), *wanted("test"), *wanted("check")]
    assert len(requirements) > 20
    missing = [str(r) for r in requirements if canonicalize_name(r.name) not in pinned]
    assert missing == [], "make lock pins them"
    outside = [str(r) for r in requirements if not all(map(r.specifier.contains, pinned[canonicalize_name(r.name)]))]
    assert outside == []
