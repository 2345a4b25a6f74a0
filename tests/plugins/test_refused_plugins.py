"""Rejected plugins: the warning names the plugin, its distribution and the fault."""

from pathlib import Path

import pytest
from tests.plugins.conftest import Install, Run, write_plugins

NO_FILE = ("-m", "ldprecover_cli", "study", "run", "none.toml")
"""A command that loads plugins and then finds no file."""

PYPROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "others"
version = "1.0"

[project.entry-points."ldprecover.{group}"]
{entry}

[tool.hatch.build.targets.wheel]
include = ["others.py"]
"""
MODULE = """
from dataclasses import dataclass, replace
from ldprecover import OUE
from ldprecover.protocols import OwnParameter
from ldprecover.recovery import METHODS
from ldprecover_attacker import RPA
class Short(OUE): protocol = "a_name_that_is_long"
class Clash(OUE):
    protocol, parameter = "clash", OwnParameter("name", 1, 2, "It clashes.", lambda epsilon, d: 1)
class Other(OUE): protocol = "other"
METHOD = replace(METHODS["norm-sub"], name="kind")
NAMED = replace(METHOD, name="Kind of")
USES = replace(METHOD, uses=frozenset({"colour"}))
BETTER = replace(METHOD, better_with=frozenset({"eta"}))
NEEDS = replace(METHOD, needs=["counts"])
SUMMARY = replace(METHOD, summary="")
RECOVER = replace(METHOD, recover=None)
GIVES = replace(METHOD, gives="all")
OPTIONS = replace(METHOD, options=("alpha",))
@dataclass(frozen=True)
class Spoken(RPA): name = "kind_of"
@dataclass(frozen=True)
class Needs(RPA):
    name = "needs"
    colour: str
number = 3
"""


@pytest.mark.parametrize(
    ("group", "entry", "words"),
    [
        ("protocols", "grr = others:Other", "has a name that is taken by ldprecover itself"),
        (
            "protocols",
            "kind = others:Other",
            "does not keep the contract: it calls itself 'other'",
        ),
        ("protocols", "kind = others:Nothing", "cannot be imported: AttributeError"),
        ("protocols", "kind = nowhere:Nothing", "cannot be imported: ModuleNotFoundError"),
        ("protocols", "kind = others:number", "it must be a subclass of FrequencyOracle, not 3"),
        ("protocols", "kind = others:Short", "at most 16 small letters"),
        (
            "protocols",
            "clash = others:Clash",
            "must be a name that a round does not have yet, not 'name'",
        ),
        ("methods", "kind = others:number", "it must be a Method, not 3"),
        (
            "methods",
            "kind = others:NAMED",
            "name must be at most 40 small letters, digits and hyphens",
        ),
        (
            "methods",
            "kind = others:USES",
            "uses must be a set of some of canaries, eta, history, malicious_model, n,",
        ),
        (
            "methods",
            "kind = others:BETTER",
            "better_with must be a set of some of counts, history, n, reports",
        ),
        ("methods", "kind = others:NEEDS", "needs must be a set of some of counts"),
        ("methods", "kind = others:SUMMARY", "summary must be one line of text, not ''"),
        ("methods", "kind = others:RECOVER", "recover must be a function, not None"),
        (
            "methods",
            "kind = others:GIVES",
            "gives must be one of distribution, sum-one, frequencies, not 'all'",
        ),
        ("methods", "kind = others:OPTIONS", "options must be a tuple of Option"),
        ("methods", "other = others:METHOD", "it calls itself 'kind'"),
        (
            "attacks",
            "kind = others:Spoken",
            "name must be at most 40 small letters, digits and hyphens",
        ),
        (
            "protocols",
            "auto = others:Nothing",
            "reserved: it means the protocol that suits a round best",
        ),
        (
            "methods",
            "poisoned = others:Nothing",
            "reserved: it means the estimate before any recovery",
        ),
        ("attacks", "none = others:Nothing", "reserved: it means no attack"),
        ("attacks", "kind = others:Other", "it must be a subclass of Attack"),
        ("attacks", "needs = others:Needs", "its option colour must have a default"),
    ],
)
def test_rejected_plugin_is_named_with_its_distribution(
    run: Run, tmp_path: Path, group: str, entry: str, words: str
) -> None:
    site = write_plugins(tmp_path, {group: entry}, MODULE)
    stderr = run(*NO_FILE, sees=(site,), code=2).stderr
    name = entry.partition(" ")[0]
    assert (
        f"warning: the plugin '{name}' of ldprecover.{group} in the distribution others" in stderr
    )
    assert words in stderr


def test_two_distributions_cannot_have_one_name(run: Run, install: Install, site: Path) -> None:
    entry = 'above-median = "others:METHOD"'
    module = "from ldprecover.recovery import METHODS\nfrom dataclasses import replace\n"
    module += "METHOD = replace(METHODS['norm-sub'], name='above-median')\n"
    other = install("other", PYPROJECT.format(group="methods", entry=entry), {"others": module})
    stderr = run(*NO_FILE, sees=(site, other), code=2).stderr
    assert "the plugin 'above-median' of ldprecover.methods in the distribution others" in stderr
    assert "taken by my-ldp" in stderr


def test_server_imports_named_plugins_only(run: Run, install: Install) -> None:
    broken = PYPROJECT.format(group="methods", entry='broken = "others:METHOD"')
    folder = install("broken", broken, {"others": "raise SystemExit('imported')"})
    stderr = run(
        "-m", "ldprecover_cli", "serve", "--plugins", "kue", "--port", "0", sees=(folder,), code=2
    ).stderr
    assert "no installed distribution has a plugin 'kue'" in stderr
