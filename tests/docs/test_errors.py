"""The errors page, the server's own, and its table of problems are one list."""

import html
import re

from errors_page import errors_sections
from tests.conftest import ServerProcess
from tests.docs.markdown import ROOT, Page

from ldprecover_server.errors import service_errors

EVERY = list(service_errors())


def test_errors_page_has_the_servers_sections() -> None:
    page = Page(ROOT / "docs" / "reference" / "errors.md")
    slugs = [problem.type.slug for problem in EVERY]
    assert page.headings[1:] == sorted(slugs)
    assert {*slugs} <= page.anchors
    text = " ".join(page.text.split())
    for section in re.split("^(?=## )", errors_sections(), flags=re.MULTILINE):
        assert " ".join(section.split()) in text, f"docs/reference/errors.md needs:\n{section}"


def test_servers_page_has_the_same_headings_and_help(server: ServerProcess) -> None:
    page = server.http.get("/docs/errors").text
    assert sorted(re.findall(r'<h2 id="([^"]+)"', page)) == sorted(
        problem.type.slug for problem in EVERY
    )
    assert all(html.escape(problem.help()) in page for problem in EVERY)
