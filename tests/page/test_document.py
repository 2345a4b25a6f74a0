"""The report of `ldprecover round report`, opened in a browser without a server."""

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from tests.conftest import ServerProcess
from tests.page.conftest import WIDTHS, Picture, Visit, overflow, serious

from ldprecover import OUE
from ldprecover.protocols.wire import pack
from ldprecover_cli import app
from ldprecover_cli.round.html_page import html_page
from ldprecover_client import Client
from ldprecover_client.leader import certified_leader

HOSTILE = (
    "</script><script>throw Error('run')</script>",
    "<!--<script>",
    "<img src=x onerror=alert(1)>",
    "a\u2028b",
    "&lt;b&gt;",
    *(f"item {i}" for i in range(75)),
)


@pytest.fixture(scope="module")
def poisoned(server: ServerProcess) -> str:
    """Two rounds of a series; in the second 600 of 4,600 reports support only two items of 80."""
    oracle, rng = OUE(2.0, len(HOSTILE)), np.random.default_rng(7)
    bits = np.zeros((600, len(HOSTILE)), np.uint8)
    bits[:, [0, 7]] = 1
    crafted = np.packbits(bits, axis=1, bitorder="little")
    names = []
    for sent in ([], [crafted]):
        opened = server.open_round("oue", 2.0, items=HOSTILE, series="reported")
        for reports in (oracle.perturb(rng.integers(len(HOSTILE), size=4_000), rng), *sent):
            assert server.submit(opened["id"], pack(reports)).status_code == 202
        server.close_round(opened["id"])
        names.append(opened["name"])
    return str(names[-1])


@pytest.fixture(scope="module")
def written(server: ServerProcess, poisoned: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the second round, with a method that it refuses."""
    file = tmp_path_factory.mktemp("report") / "out.html"
    methods = [
        word
        for name in ("norm-sub", "ldprecover", "unmix", "detection-all")
        for word in ("--method", name)
    ]
    assert (
        app.run(["round", "report", poisoned, "--output", str(file), *methods, "--url", server.url])
        == 0
    )
    return file


@pytest.fixture
def offline(visit: Visit) -> Callable[..., Any]:
    """Open files; any error or network request of theirs fails the test."""

    def start(file: Path, width: int = 1280, scheme: Literal["light", "dark"] = "light") -> Any:
        visitor = visit(file.parent.as_uri())
        visitor.page.emulate_media(color_scheme=scheme)
        return visitor.open(file.name, width=width)

    return start


def test_report_states_what_is_certain(
    offline: Callable[..., Any], written: Path, poisoned: str, server: ServerProcess
) -> None:
    with Client(server.url) as client:
        certificate = certified_leader(client, poisoned)
    assert certificate is not None
    shown = offline(written)
    section = shown.locator("section", has=shown.get_by_role("heading", name="What is proven"))
    text = section.inner_text()
    assert certificate["answers"][0]["sentence"] in text
    assert certificate["assumption"] in text
    proven = re.search(r"at least (\S+) % of them did not come from honest users", text)
    assert proven
    least = certificate["least_malicious_share"]
    assert least - 1.1e-5 < float(proven[1]) / 100 <= least


def test_report_shows_round_and_conclusions(
    offline: Callable[..., Any], written: Path, poisoned: str
) -> None:
    shown = offline(written)
    shown.get_by_role("heading", name=poisoned, exact=True).wait_for()
    text = shown.locator("main").inner_text()
    assert "4,600 reports over 80 items by OUE at ε = 2; the round is closed." in text
    for method in ("norm-sub", "ldprecover", "unmix"):
        assert shown.get_by_role("heading", name=method, exact=True).count() == 1
    assert "No recovery by detection-all" in text
    assert "Some reports were made to mislead with probability" in text
    assert "2 alarms are raised" in text
    raised = shown.get_by_role("listitem").filter(has=shown.locator(".badge.bad"))
    assert [each.split(":")[0] for each in raised.all_inner_texts()] == [
        "raised sum-drift",
        "raised support-size",
    ]
    assert "Near certain attack: an estimated" in shown.locator(".lead").inner_text()
    assert shown.locator(".tile").count() == 4
    assert re.search(r"A report of \d+ \w+ \d{4}: 4,600 reports", text)
    assert "rose by more than noise explains since 1 earlier round" in text
    shown.get_by_role("img", name="Share of users by item").wait_for()


def test_labels_full_of_html_are_text(offline: Callable[..., Any], written: Path) -> None:
    shown = offline(written)
    shown.get_by_label("Sort by").select_option("order of the round")
    shown.get_by_text("Share of users by item: the numbers").click()
    rows = shown.locator("[role=rowgroup] .line:not(.head)")
    for i, label in enumerate(HOSTILE[:5]):
        assert rows.nth(i).locator(".cell").first.text_content() == label
    assert shown.locator("main img[src=x]").count() == 0


def test_search_and_method_choice_work(offline: Callable[..., Any], written: Path) -> None:
    shown = offline(written)
    shown.get_by_label("Find").fill("item 7")
    shown.get_by_text("6 of 80 items").wait_for()
    shown.get_by_role("checkbox", name="norm-sub").check()
    shown.get_by_role("checkbox", name="unmix").uncheck()
    shown.get_by_text("Share of users by item: the numbers").click()
    head = (
        shown.get_by_role("region", name="Table: Share of users by item")
        .locator("th")
        .all_inner_texts()
    )
    assert "norm-sub" in head
    assert not any("unmix" in title for title in head)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_report_is_accessible(
    offline: Callable[..., Any], written: Path, picture: Picture, scheme: str
) -> None:
    for name, width in WIDTHS.items():
        shown = offline(written, width, scheme)
        shown.get_by_role("img", name="Share of users by item").wait_for()
        assert serious(shown, scheme=scheme) == []
        assert overflow(shown) <= 0
        picture(shown, f"report-{name}-{scheme}")


def test_data_cannot_end_its_element() -> None:
    """For any labels the file has its three scripts and no other."""

    class Reader(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.scripts: list[str] = []
            self.data = ""

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            if tag == "script":
                self.scripts.append(dict(attrs).get("type") or "")

        def handle_data(self, data: str) -> None:
            if self.scripts == ["application/json"]:
                self.data += data

    text = html_page("js/report.js", "</title><script>", {"labels": HOSTILE})
    reader = Reader()
    reader.feed(text)
    assert reader.scripts == ["application/json", "importmap", "module"]
    assert json.loads(reader.data.partition("\n")[0])["labels"] == list(HOSTILE)
    assert "\u2028" not in text
    assert not re.search(r"""(src|href)\s*=\s*["']?(http|//)""", text)


def test_reports_empty_round_and_overwrites_nothing(
    server: ServerProcess,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    offline: Callable[..., Any],
    poisoned: str,
) -> None:
    opened = server.open_round()
    file = tmp_path / "empty.html"
    arguments = ["round", "report", opened["name"], "--output", str(file), "--url", server.url]
    assert app.run(arguments) == 0
    assert offline(file).get_by_text("There are no estimates").is_visible()
    before = file.read_bytes()
    capsys.readouterr()
    assert app.run(["round", "report", poisoned, *arguments[3:]]) == 2
    message = capsys.readouterr().err
    assert message.startswith(f"error: cannot write {file}"), "the error comes before any recovery"
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["ROUND", "--method", "magic"], "--method magic: the server has no such method"),
        (["ROUND", "--target", "pasta"], "no item of the round is called 'pasta'"),
        (["nowhere"], "no round is called 'nowhere'"),
    ],
)
def test_rejects_unknown_names_and_leaves_no_file(
    server: ServerProcess,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
    options: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    name = server.open_round()["name"] if "ROUND" in options else ""
    arguments = [name if word == "ROUND" else word for word in options]
    arguments += ["--output", "x.html", "--url", server.url]
    assert app.run(["round", "report", *arguments]) in (1, 2)
    assert message in capsys.readouterr().err
    assert not (tmp_path / "x.html").exists()


def test_file_has_the_name_of_the_round(
    server: ServerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without --output, in the current folder; an existing file is not overwritten."""
    monkeypatch.chdir(tmp_path)
    name = server.open_round()["name"]
    arguments = ["round", "report", name, "--url", server.url]
    assert app.run(arguments) == 0
    assert (tmp_path / f"{name}.html").exists()
    assert app.run(arguments) == 2


def test_reads_protected_round_with_admin_key(
    server: ServerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = server.open_round(read_access="key")["name"]
    monkeypatch.setenv("LDPRECOVER_ADMIN_KEY", server.admin_key)
    assert (
        app.run(
            ["round", "report", name, "--output", str(tmp_path / "out.html"), "--url", server.url]
        )
        == 0
    )
