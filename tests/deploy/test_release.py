"""What a release says of itself in several places is the same, and its workflow holds no more than
it needs.
"""

import tomllib
from typing import Any

import yaml
from tests.deploy.tools import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOW: dict[Any, Any] = yaml.safe_load(
    (ROOT / ".github" / "workflows" / "release.yml").read_text()
)


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
    assert [reference["url"] for reference in citation["references"]] == [PROJECT["urls"]["Paper"]]


def test_a_release_is_published_without_a_stored_secret() -> None:
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert WORKFLOW["jobs"]["publish"]["permissions"] == {"id-token": "write"}
    assert "secrets." not in (ROOT / ".github" / "workflows" / "release.yml").read_text()


def test_every_action_is_of_a_stated_version() -> None:
    uses = [
        step["uses"] for job in WORKFLOW["jobs"].values() for step in job["steps"] if "uses" in step
    ]
    assert uses
    assert all("@" in action and not action.endswith(("@main", "@master")) for action in uses)


def test_what_is_released_is_built_with_the_lock() -> None:
    runs = "\n".join(step.get("run", "") for step in WORKFLOW["jobs"]["build"]["steps"])
    assert "--no-deps --require-hashes --requirement deploy/build.lock" in runs
    assert "hatchling build" in runs
