"""What pages say beside their examples: links lead somewhere, names exist, no page is out of the
index.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any

from tests.conftest import ServerProcess
from tests.docs.markdown import PAGES, ROOT, Page
from typer.main import get_command

from ldprecover.plugins import GROUPS
from ldprecover_cli.app import app
from ldprecover_server import Settings

MORE_PAGES = [
    *(
        Page(ROOT / name)
        for name in ("CHANGELOG.md", "CONTRIBUTING.md", "NOTICE.md", "SECURITY.md")
    ),
    *(
        Page(ROOT / path)
        for path in (
            "client/js/README.md",
            "client/ldprecover_client/data/README.md",
            "tests/vectors/README.md",
        )
    ),
    *map(Page, sorted((ROOT / "docs" / "decisions").glob("*.md"))),
]
PACKAGES = [
    import_module(name)
    for name in (
        "ldprecover",
        "ldprecover_client",
        "ldprecover_attacker",
        "ldprecover_experiments",
        "ldprecover_server",
        "ldprecover.recovery",
    )
]
PUBLIC = {name for package in PACKAGES for name in package.__all__}
_VARIABLES = re.compile("LDPRECOVER_[A-Z_]+")
NOT_OURS = {"DeprecationWarning", "ETag", "NaN", "ldprecover.db", "ldprecover.round", *GROUPS}
NOT_OURS |= {"LDPRecoverAttack"}  # an alert


def faults(check: Callable[[Page], Iterable[str]], pages: Iterable[Page] = PAGES) -> list[str]:
    """Return what a check finds, each with its page."""
    return [f"{page.name}: {fault}" for page in pages for fault in check(page)]


def test_every_link_leads_to_a_file_and_a_heading() -> None:
    def broken(page: Page) -> Iterator[str]:
        for link in page.links:
            path, _, anchor = link.partition("#")
            target = (page.path.parent / path).resolve() if path else page.path
            exists = target.exists() and target.is_relative_to(ROOT)
            if link.startswith("https://"):
                continue
            if not exists or (anchor and anchor not in Page(target).anchors):
                yield link

    assert faults(broken, [*PAGES, *MORE_PAGES]) == []


def test_the_index_has_every_page() -> None:
    index = Page(ROOT / "docs" / "index.md")
    listed = {
        (index.path.parent / link).resolve()
        for link in index.links
        if not link.startswith("https:")
    }
    assert {page.path for page in PAGES} - {index.path, ROOT / "README.md"} <= listed


def test_no_two_headings_of_a_page_share_an_anchor() -> None:
    assert [page.name for page in PAGES if len(page.anchors) != len(page.headings)] == []


def test_every_environment_variable_exists() -> None:
    settings = {f"LDPRECOVER_{name.upper()}" for name in Settings.model_fields}
    of_compose = _VARIABLES.findall((ROOT / "docker-compose.yml").read_text())
    code = "".join(sources("cli", "core"))
    names = {*settings, *of_compose, *re.findall(r'"(LDPRECOVER_[A-Z_]+)"', code)}
    assert faults(lambda page: {*_VARIABLES.findall(page.text)} - names) == []


def sources(*folders: str) -> list[str]:
    return [
        path.read_text(encoding="utf-8")
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
    ]


def test_every_name_in_code_is_public() -> None:
    """Names with capitals and small letters inside, names that are called, and dotted names of the
    packages.
    """

    def unknown(page: Page) -> Iterator[str]:
        for span in set(page.code) - NOT_OURS:
            names = re.findall(r"^([A-Z]\w*[a-z]\w*[A-Z]\w*|[A-Z]\w+(?=\())", span)
            yield from set(names) - PUBLIC
            for dotted in re.findall(r"^(ldprecover\w*(?:\.\w+)+)(?:\(|$)", span):
                resolve(dotted)

    assert faults(unknown) == []


def resolve(dotted: str) -> Any:
    """Return what a dotted name means. Raises ImportError or AttributeError where it means
    nothing.
    """
    try:
        return import_module(dotted)
    except ModuleNotFoundError:
        module, _, name = dotted.rpartition(".")
        return getattr(import_module(module), name)


def test_every_command_and_option_in_code_exists() -> None:
    def unknown(page: Page) -> Iterator[str]:
        for span in page.code:
            if not span.startswith("ldprecover "):
                continue
            command: Any = get_command(app)
            words = [word for word in span.split()[1:] if word != "…"]
            while words and words[0] in getattr(command, "commands", {}):
                command = command.commands[words.pop(0)]
            options = {flag for parameter in command.params for flag in parameter.opts} | {"--help"}
            flags = {word for word in words if word.startswith("--")}
            # The options of `serve` are made from the settings when it is called.
            if command.name == "root" or (command.name != "serve" and not flags <= options):
                yield span

    assert faults(unknown) == []


def test_commands_run_as_pasted() -> None:
    """A page that asks a server starts it first, and exports the variables that it reads."""

    def unset(page: Page) -> Iterator[str]:
        before = ""
        for block in page.blocks:
            if block.language in ("console", "bash", "python"):
                if "ldprecover round open" in block.text and "ldprecover serve\n" not in before:
                    yield f"line {block.line}: no server"
                for name in re.findall(r"(?:\$|environ\[\")(LDPRECOVER_\w+)", block.text):
                    if f"export {name}=" not in before + block.text:
                        yield f"line {block.line}: {name}"
                before += block.text

    assert faults(unset) == []


def test_every_path_in_code_exists(server: ServerProcess) -> None:
    paths = server.http.get("/openapi.json").json()["paths"]

    def unknown(page: Page) -> Iterator[str]:
        for span in page.code:
            if called := re.fullmatch(r"(GET|POST|DELETE) (/\S*)", span):
                method, path = called.groups()
                if method.lower() not in paths.get(path.replace("{id}", "{round}"), ()):
                    yield span

    assert faults(unknown) == []


def test_every_make_target_exists() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in [*PAGES, *MORE_PAGES]:
        named = re.findall(
            r"^(?:\$ )?make (\w+)", "".join(b.text for b in page.blocks), re.MULTILINE
        )
        named += [span.split()[1] for span in page.code if re.fullmatch(r"make \w+", span)]
        assert set(named) <= targets, page.name
