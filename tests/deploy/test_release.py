"""What a release says of itself in several places is the same, and its workflow holds no more than
it needs.
"""

import json
import re
import tomllib
from typing import Any

import yaml
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager
from packaging.licenses import canonicalize_license_expression
from tests.deploy.tools import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = ROOT / ".github" / "workflows"
WORKFLOW: dict[Any, Any] = yaml.safe_load((WORKFLOWS / "release.yml").read_text())


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
    assert declared == present | {ROOT / "LICENSE", ROOT / "NOTICE.md"}


def test_javascript_package_is_of_this_version_and_repository() -> None:
    client = ROOT / "client" / "js"
    manifest, lock = (
        json.loads((client / name).read_text()) for name in ("package.json", "package-lock.json")
    )
    # The rest of the expression belongs to vendored files.
    assert manifest["license"] == PROJECT["license"].partition(" AND ")[0]
    assert (client / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    repository = PROJECT["urls"]["Repository"]
    assert manifest["version"] == lock["version"] == PROJECT["version"]
    assert manifest["repository"]["url"] == f"git+{repository}.git"
    assert (ROOT / manifest["repository"]["directory"] / "package.json").exists()
    assert manifest["homepage"].startswith(repository)


def test_a_release_is_published_without_a_stored_secret() -> None:
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert WORKFLOW["jobs"]["publish"]["permissions"] == {"id-token": "write"}
    assert WORKFLOW["jobs"]["image"]["permissions"] == {"contents": "read", "packages": "write"}
    assert "secrets." not in (WORKFLOWS / "release.yml").read_text()


def test_a_rehearsal_publishes_nothing() -> None:
    assert "workflow_dispatch" in WORKFLOW[True]  # YAML reads `on` as true
    of_tags = {name for name, job in WORKFLOW["jobs"].items() if "tag" in job.get("if", "")}
    assert of_tags == {*WORKFLOW["jobs"]} - {"build"}


def test_every_action_is_pinned_by_its_commit() -> None:
    for workflow in WORKFLOWS.glob("*.yml"):
        uses = re.findall(r"uses: (.*)", workflow.read_text())
        assert uses
        assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v[\d.]+", action) for action in uses), uses


def test_workflows_beside_the_release_run_make_alone() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    nightly = yaml.safe_load((WORKFLOWS / "nightly.yml").read_text())["jobs"]["run"]["strategy"]
    commands = [f"make {target}" for target in nightly["matrix"]["target"]]
    for workflow in ("ci.yml", "docs.yml", "nightly.yml"):
        commands += re.findall(r"- run: (.*)", (WORKFLOWS / workflow).read_text())
    commands.remove("make ${{ matrix.target }}")
    commands.remove(".ci/run")
    words = {word for command in commands for word in command.split()}
    assert {word for word in words if "=" not in word} <= {"make"} | targets  # "=" sets a variable


def test_the_oldest_and_the_newest_python_are_tested() -> None:
    matrix = yaml.safe_load((WORKFLOWS / "ci.yml").read_text())["jobs"]["check"]["strategy"]
    named = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if ":: 3." in line]
    assert matrix["matrix"]["python"] == [named[0], named[-1]]


def test_package_index_gets_absolute_links() -> None:
    readme = ProjectMetadata(str(ROOT), PluginManager()).core.readme
    assert not re.search(r"\]\((?!https:)", readme)
    picture = f"{PROJECT['urls']['Repository']}/raw/v{PROJECT['version']}/docs/pictures/lesson.png"
    assert picture in readme
