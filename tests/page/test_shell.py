"""The page's files: complete, small, limited to their host, and cached until they change."""

import gzip
import hashlib
import re
from html.parser import HTMLParser

import httpx
import pytest
from tests.conftest import ServerProcess
from tests.page.conftest import Visit, Visitor

from ldprecover_server import page

POLICY = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
VENDORED = {
    "vendor/uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "vendor/uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
}


def test_every_file_has_type_policy_and_etag(server: ServerProcess) -> None:
    for name, kind in {
        "": "text/html; charset=utf-8",
        "page/js/main.js": "text/javascript; charset=utf-8",
        "page/app.css": "text/css; charset=utf-8",
        "page/icon.svg": "image/svg+xml",
    }.items():
        answer = server.get(f"/{name}")
        assert (answer.status_code, answer.headers["content-type"]) == (200, kind)
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-cache"
        again = server.get(f"/{name}", headers={"If-None-Match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["content-security-policy"] == POLICY


@pytest.mark.parametrize(
    ("accepts", "zipped"),
    [
        ("gzip", True),
        ("br, gzip;q=0.5", True),
        ("*", True),
        ("identity", False),
        ("gzip;q=0, br", False),
        ("", False),
    ],
)
def test_file_is_compressed_on_request(accepts: str, zipped: bool) -> None:
    file = page.files()["app.css"]
    status, headers, body = file.response(accepts)
    assert (status, headers.get("Content-Encoding")) == (200, "gzip" if zipped else None)
    assert (gzip.decompress(body) if zipped else body) == file.body
    assert headers["Vary"] == "Accept-Encoding"
    assert file.response("identity" if zipped else "gzip", headers["ETag"])[0] == 200, (
        "another form has another tag"
    )


def test_page_is_at_most_150_kb_compressed() -> None:
    assert sum(len(file.gzip_body) for file in page.files().values()) < 150_000


@pytest.mark.parametrize("name", VENDORED)
def test_vendored_files_are_unchanged(name: str) -> None:
    assert hashlib.sha256(page.files()[name].body).hexdigest() == VENDORED[name]
    assert b"Permission is hereby granted" in page.files()["vendor/uPlot.LICENSE"].body


def test_html_has_no_inline_script_or_style() -> None:
    """The policy would block them, and a browser reports that only in its console."""

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            names = dict(attrs)
            assert tag != "style"
            for name in ("src", "href"):
                if (names.get(name) or "").startswith("page/"):
                    assert str(names[name]).removeprefix("page/") in page.files()
            assert tag != "script" or names.get("src")
            assert not [name for name in names if name == "style" or name.startswith("on")]

    Reader().feed(page.files()[page.INDEX].body.decode())


def test_every_imported_module_exists() -> None:
    scripts = {
        name: file.body.decode() for name, file in page.files().items() if name.startswith("js/")
    }
    for name, text in scripts.items():
        for module in re.findall(r"""(?:from|import)\s*\(?\s*"(\.[^"]+)"\)?""", text):
            assert (
                str(httpx.URL(f"http://h/{name}").join(module)).removeprefix("http://h/") in scripts
            ), (name, module)


def test_only_api_fetches_and_nothing_writes_html() -> None:
    for name, file in page.files().items():
        if name.startswith("js/"):
            text = file.body.decode()
            assert name == "js/api.js" or not re.search(
                r"\bfetch\(|XMLHttpRequest|EventSource|WebSocket", text
            ), name
            assert not re.search(
                r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text
            ), name


def test_unknown_view_shows_message(visitor: Visitor) -> None:
    shown = visitor.open("#/nothing")
    assert "there is no such view" in shown.locator("main [role=alert]").inner_text()
    shown.get_by_role("link", name="All rounds").click()
    shown.get_by_role("heading", name="Rounds", exact=True).wait_for()


def test_the_api_reference_works_under_its_policy(visit: Visit, server: ServerProcess) -> None:
    """What the policy blocks stands in the console, which fails the test."""
    reference = visit(server.url).open("docs")
    reference.locator(".opblock-summary").first.wait_for()
