"""What a release says of itself in several places is the same, and its workflow holds no more than
it needs.
"""

import json
import tomllib
from typing import Any

import yaml
from packaging.licenses import canonicalize_license_expression
from tests.deploy.tools import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOW: dict[Any, Any] = yaml.safe_load(
    (ROOT / ".github" / "workflows" / "release.yml").read_text()
)


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"].partition(" AND ")[0]
    assert [reference["url"] for reference in citation["references"]] == [PROJECT["urls"]["Paper"]]


def test_license_is_an_expression_of_spdx() -> None:
    assert canonicalize_license_expression(PROJECT["license"]) == PROJECT["license"]


def test_every_license_in_the_packages_is_declared() -> None:
    declared = {path for pattern in PROJECT["license-files"] for path in ROOT.glob(pattern)}
    packages = {path.parent for path in ROOT.glob("*/ldprecover*/__init__.py")}
    present = {
        path
        for package in packages
        for pattern in ("*LICENSE*", "NOTICE*")
        for path in package.rglob(pattern)
    }
    assert present
    assert declared == present | {ROOT / "LICENSE"}


def test_package_for_javascript_is_of_this_version_and_repository() -> None:
    manifest = json.loads((ROOT / "client" / "js" / "package.json").read_text())
    lock = json.loads((ROOT / "client" / "js" / "package-lock.json").read_text())
    repository = PROJECT["urls"]["Repository"]
    assert manifest["version"] == lock["version"] == PROJECT["version"]
    assert manifest["repository"]["url"] == f"git+{repository}.git"
    assert (ROOT / manifest["repository"]["directory"] / "package.json").exists()
    assert manifest["homepage"].startswith(repository)
    assert manifest["keywords"]
    assert manifest["engines"] == {"node": ">=18"}


def test_a_release_waits_for_pages_that_install_by_name() -> None:
    """Until then they say that the name is in no package index."""
    steps = "\n".join(step.get("run", "") for step in WORKFLOW["jobs"]["build"]["steps"])
    assert '! grep -rq "in no package index" docs' in steps
    assert '"https://github.com/$GITHUB_REPOSITORY"' in steps


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
