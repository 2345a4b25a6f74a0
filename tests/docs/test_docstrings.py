"""What `help` shows of each public class and function: types by name, and an example that runs."""

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest
from pydantic import BaseModel
from tests.conftest import ADMIN_KEY, ServerProcess
from tests.docs.public_names import public_objects
from tests.docs.test_pages import resolve

import ldprecover
from ldprecover import Estimates, RoundExport, RoundParameters, Tally
from ldprecover_client import Client, Population, load_dataset, write_report_file

OBJECTS = public_objects()
PACKAGES = ("ldprecover", "ldprecover_client", "ldprecover_attacker", "ldprecover_experiments")
EXAMPLES = {name: each for name, each in OBJECTS.items() if name.split(".")[0] in PACKAGES}
WITHOUT = {
    # What calls return.
    *(
        "Recovery",
        "BulkReceipt",
        "Changed",
        "Entry",
        "Form",
        "Frequencies",
        "Receipt",
        "Recovered",
        "Round",
        "RoundStatus",
        "RoundSummary",
        "Series",
        "TopItem",
        "Verdict",
    ),
    *("CampaignResult", "CellRow", "Comparison", "LabelledEstimates", "MethodOutcome", "Results"),
    *("SimulatedRecovery", "SimulatedRound"),
    # What attacks of other packages extend or return: plugins.md has an example.
    *("ItemAttack", "ModelledAttack", "AttackPlan", "SubsetAttack", "TargetedAttack"),
}


def signatures(value: Any) -> Iterator[tuple[str, inspect.Signature]]:
    """Yield the signatures of a function, or of a class and its public methods."""
    members = {"": value}
    if inspect.isclass(value):
        members |= {k: v for k, v in inspect.getmembers(value) if not k.startswith("_")}
    for name, member in members.items():
        if callable(member) and getattr(member, "__module__", "").startswith("ldprecover"):
            yield name, inspect.signature(member)


def is_error(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, Exception)


def test_help_shows_types_by_their_names() -> None:
    """Unions of numpy and modules in an annotation hide what an argument is."""
    dotted = [
        f"{name}.{method}: {inspect.formatannotation(annotation)}"
        for name, value in OBJECTS.items()
        # Errors and messages are not called, and Pydantic adds further arguments to settings.
        if not (inspect.isclass(value) and issubclass(value, Exception | BaseModel))
        for method, signature in signatures(value)
        for annotation in (
            *(each.annotation for each in signature.parameters.values()),
            signature.return_annotation,
        )
        if not isinstance(annotation, str) and annotation is not inspect.Signature.empty
        if "." in inspect.formatannotation(annotation)
    ]
    assert dotted == []


def test_public_methods_explain_themselves() -> None:
    bare = [
        f"{name}.{member}"
        for name, value in OBJECTS.items()
        if inspect.isclass(value)
        for member, each in vars(value).items()
        if not member.startswith("_")
        # A function of another name is the default of a field.
        if isinstance(each, property) or getattr(each, "__name__", "") == member
        if not inspect.getdoc(getattr(value, member))
    ]
    assert bare == []


def test_names_in_docstrings_exist() -> None:
    for value in OBJECTS.values():
        for dotted in re.findall(r"`(ldprecover\w*(?:\.\w+)+)`", inspect.getdoc(value) or ""):
            resolve(dotted)


def examples(value: Any) -> list[str]:
    """Return the indented blocks of a docstring, but for those that belong to a heading."""
    text = re.sub(r"^Parameters:\n(?:(?: +.*)?\n)+", "\n", inspect.getdoc(value) or "", flags=re.M)
    blocks = re.findall(r"(?:^|\n\n)((?: {4}.*\n(?:\n(?= {4}))?)+)", f"{text}\n")
    return [textwrap.dedent(block) for block in blocks]


def test_public_classes_and_functions_have_an_example() -> None:
    needed = {name for name in EXAMPLES if name.rpartition(".")[0] in PACKAGES}
    bare = [
        name for name in needed if not is_error(EXAMPLES[name]) and not examples(EXAMPLES[name])
    ]
    assert {name.rpartition(".")[2] for name in bare} <= WITHOUT


@pytest.fixture(scope="session")
def reader(
    server: ServerProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Any]]:
    """The names that a reader of an example has: a server with two rounds, reports, an oracle."""
    names: dict[str, Any] = {"np": np, "Path": Path, "url": server.url, "key": ADMIN_KEY}
    for module in ("ldprecover", "ldprecover.certificate", "ldprecover.planning", *PACKAGES[1:]):
        package = import_module(module)
        names |= {name: getattr(package, name) for name in package.__all__}
    names["simulate"] = ldprecover.simulate
    cities = load_dataset("cities")
    client = Client(server.url, key=ADMIN_KEY)
    options = {"Which system?": ["Linux", "Windows"], "Which editor?": ["vim", "emacs"]}
    questions = [
        {"question": each, "protocol": "grr", "epsilon": 1.0, "items": items}
        for each, items in options.items()
    ]
    client.open_form(name="usage", assign="client", rounds=questions)
    client.open_round(name="lunch", protocol="oue", epsilon=1.0, items=["soup", "salad"])
    Population([2, 1], 30, seed=1).report_to(server.url, "lunch", key=ADMIN_KEY)
    opened = client.open_round(name="cities", protocol="oue", epsilon=1.0, items=cities.items)
    oracle, users = opened.parameters.oracle, Population.of(cities, 300, seed=1)
    users.report_to(server.url, "cities", key=ADMIN_KEY)
    reports = users.reports(oracle)
    tally = Tally.of(oracle, reports)
    path = tmp_path_factory.mktemp("reader") / "export.json"
    export = RoundExport(
        round="R1", name="cities", parameters=RoundParameters("oue", 1.0, cities.items), tally=tally
    )
    path.write_text(json.dumps(export.to_dict()))
    names |= {"opened": opened, "oracle": oracle, "users": users, "values": users.values()}
    names |= {"reports": reports, "more_reports": reports, "tally": tally, "export": export}
    names |= {"rng": np.random.default_rng(0), "frequencies": cities.frequencies}
    names |= {"estimates": Estimates.of(oracle, tally), "path": path}
    with client:
        yield names | {"client": client}


@pytest.mark.parametrize("name", [name for name, each in EXAMPLES.items() if examples(each)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_example_runs(
    name: str, reader: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each with a fresh ledger, and with the reader's server in place of the usual address."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    Path("survey.csv").write_text("city\nReno\nTampa\nReno\n")
    Path("products.csv").write_text("Nr;Produkt\n1;Äpfel\n2;Birnen\n", encoding="cp1252")
    write_report_file("cities.parquet", reader["export"], [reader["reports"].tobytes()])
    for example in examples(EXAMPLES[name]):
        program = example.replace("http://localhost:8000", reader["url"])
        code = compile(program, name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        module = vars(import_module(name.rpartition(".")[0]))
        if result := eval(code, {**module, **reader}):

            async def awaited(result: Any = result) -> None:
                await result

            anyio.run(awaited)
