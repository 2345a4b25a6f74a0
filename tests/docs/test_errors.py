"""The errors page, the server's own, and its table of problems are one list."""

import html
import re

from tests.conftest import ServerProcess
from tests.docs.markdown import ROOT, Page

from ldprecover_server.errors import ServiceError, service_errors

EVERY = list(service_errors())


def section(problem: type[ServiceError]) -> str:
    kind = problem.type
    return f"## {kind.slug}\n\nStatus {kind.status}: {kind.title}.\n\n{problem.help()}\n"


def squeezed(text: str) -> str:
    return " ".join(text.split())


def test_every_problem_has_its_heading_with_the_servers_own_words() -> None:
    page = Page(ROOT / "docs" / "reference" / "errors.md")
    assert page.headings[1:] == sorted(problem.type.slug for problem in EVERY)
    for problem in EVERY:
        assert problem.type.slug in page.anchors
        said = squeezed(section(problem))
        assert said in squeezed(page.text), (
            f"docs/reference/errors.md must say:\n{section(problem)}"
        )


def test_the_servers_page_has_the_same_headings_and_words(server: ServerProcess) -> None:
    page = server.http.get("/docs/errors").text
    assert sorted(re.findall(r'<h2 id="([^"]+)"', page)) == sorted(
        problem.type.slug for problem in EVERY
    )
    for problem in EVERY:
        assert html.escape(problem.help()) in page
