"""The page's files: complete, small, limited to their host, and cached until they change."""

import hashlib
import re
import tomllib
from pathlib import Path

import httpx
import pytest
from tests.conftest import ServerProcess
from tests.page.conftest import Visit, Visitor

from ldprecover_server import page

ROOT = Path(__file__).parents[2]
POLICY = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
VENDORED = {"vendor/uqr.mjs": "7f0e61c2f13bb3724edee7bfb876e13c54ac9ee4fcfa283c9fa93cfb1241c325"}


def test_every_file_has_type_policy_and_etag(server: ServerProcess) -> None:
    for name, kind in {
        "": "text/html; charset=utf-8",
        "page/js/main.js": "text/javascript; charset=utf-8",
        "page/app.css": "text/css; charset=utf-8",
        "page/icon.svg": "image/svg+xml",
        "page/help.html": "text/html; charset=utf-8",
        "page/survey.html": "text/html; charset=utf-8",
        "page/client/ldprecover.js": "text/javascript; charset=utf-8",
        "page/client/example/languages/ar.json": "application/json",
        "page/vendor/uqr.mjs": "text/javascript; charset=utf-8",
    }.items():
        answer = server.get(f"/{name}")
        assert (answer.status_code, answer.headers["content-type"]) == (200, kind)
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["cache-control"] == "no-cache"
        again = server.get(f"/{name}", headers={"If-None-Match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["content-security-policy"] == POLICY


def test_file_is_compressed_on_request(server: ServerProcess) -> None:
    plain, zipped = (
        server.get("/page/app.css", headers={"Accept-Encoding": coding})
        for coding in ("identity", "gzip")
    )
    assert "content-encoding" not in plain.headers
    assert zipped.headers["content-encoding"] == "gzip"
    assert plain.content == zipped.content == page.files()["app.css"].body
    assert plain.headers["vary"] == zipped.headers["vary"] == "Accept-Encoding"
    assert plain.headers["etag"] != zipped.headers["etag"]


def test_wheel_has_the_client_of_the_survey() -> None:
    """A checkout serves it from client/js; a wheel has the same files among the page's own."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    names = set()
    for source, target in included.items():
        path = ROOT / source
        for file in [path] if path.is_file() else path.rglob("*.*"):
            name = file.relative_to(path).as_posix()
            names.add(f"{target}/{name}".removesuffix("/."))
    served = {name for name in page.files() if name.startswith("client/")}
    assert names == {f"ldprecover_server/page/static/{name}" for name in served}


def test_both_pages_of_the_survey_are_equal() -> None:
    """Only their addresses differ: the server's is at a short one."""
    bodies = [
        page.files()[name].body.partition(b"<body>")[2]
        for name in ("survey.html", "client/example/survey.html")
    ]
    assert bodies[0] == bodies[1] != b""


def test_page_is_at_most_160_kb_compressed() -> None:
    assert sum(len(file.gzip_body) for file in page.files().values()) < 160_000


@pytest.mark.parametrize("name", VENDORED)
def test_vendored_files_are_unchanged(name: str) -> None:
    assert hashlib.sha256(page.files()[name].body).hexdigest() == VENDORED[name]
    licence = f"{name.partition('.')[0]}.LICENSE"
    assert b"Permission is hereby granted" in page.files()[licence].body


def test_first_view_preloads_its_modules() -> None:
    """Else a browser learns of each import only from the module before."""
    index = page.files()[page.INDEX].body.decode()
    preloaded = set(re.findall(r'modulepreload" href="page/([^"]+)"', index))
    needed, pending = set(), ["js/main.js", "js/views/rounds.js", "js/round/view.js"]
    while pending:
        name = pending.pop()
        needed.add(name)
        text = page.files()[name].body.decode()
        for module in re.findall(r"""from "(\.[^"]+)";""", text):
            path = str(httpx.URL(f"http://h/{name}").join(module)).removeprefix("http://h/")
            if path not in needed:
                pending.append(path)
    assert preloaded == needed - {"js/main.js"}
    sizes = [len(page.files()[name].gzip_body) for name in (*needed, page.INDEX, "app.css")]
    assert sum(sizes) < 50_000, "more than a line of 30 kB/s brings in 2 s"


def test_each_term_on_the_page_is_explained() -> None:
    """The "?" beside a term shows the sentence of help.html with its id."""
    explained = re.findall(r'<dt id="([^"]+)">', page.files()["help.html"].body.decode())
    used = {
        term
        for name, file in page.files().items()
        if name.startswith("js/")
        for term in re.findall(r"""\bhelp\("([^"]+)\"""", file.body.decode())
    }
    assert used <= set(explained)
    assert len(explained) == len(set(explained)) > len(used) > 5


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


def test_page_without_one_of_its_modules_is_loaded_again(visitor: Visitor) -> None:
    visitor.expects = {404, 503}
    visitor.context.route("**/src/words.js", lambda route: route.fulfill(status=503), times=1)
    shown = visitor.open("page/survey.html?round=none")
    shown.get_by_text("A part of this page did not arrive.").wait_for()
    shown.get_by_text("There is no survey under this link").wait_for()


def test_unknown_view_shows_message(visitor: Visitor) -> None:
    shown = visitor.open("#/nothing")
    assert "there is no such view" in shown.locator("main [role=alert]").inner_text()
    shown.get_by_role("link", name="All rounds").click()
    shown.get_by_role("heading", name="Rounds", exact=True).wait_for()


def test_the_api_reference_works_under_its_policy(visit: Visit, server: ServerProcess) -> None:
    """What the policy blocks stands in the console, which fails the test."""
    reference = visit(server.url).open("docs")
    reference.locator(".opblock-summary").first.wait_for()
