"""Everything a page shows is run: its Python, its commands, its requests; what it prints
comes out.
"""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ADMIN_KEY, ServerProcess, StartServer
from tests.docs.markdown import PAGES, Page
from tests.docs.session import Session, has_tools, matches

_REQUESTS = re.compile(r"127\.0\.0\.1|LDPRECOVER_|^(\$ )?ldprecover (?!study)", re.MULTILINE)


@pytest.mark.skipif(not has_tools(), reason="the pages' commands need bash and curl")
@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.blocks], ids=lambda page: page.name
)
def test_examples_of_a_page_work(
    page: Page, server: ServerProcess, start_server: StartServer, tmp_path: Path
) -> None:
    """A page that starts a server gets it as it starts it, in the reader's folder; another page
    that sends requests has its own one running.
    """
    if not has_tools(page):
        pytest.skip("the page's JavaScript needs Node, or its Parquet pyarrow")
    if not any(_REQUESTS.search(block.text) for block in page.blocks):
        Session(page, server, tmp_path, {}).run()
        return
    commands, starts, _ = page.text.partition("ldprecover serve\n")
    chosen = re.search(r"LDPRECOVER_ADMIN_KEY=([\w-]+)", commands)
    key = (chosen and chosen[1]) if starts else ADMIN_KEY
    own = start_server(admin_key=key)
    variables = {} if starts else {"LDPRECOVER_ADMIN_KEY": ADMIN_KEY}
    Session(page, own, own.folder, variables).run()


@pytest.mark.parametrize(
    ("shown", "got", "same"),
    [
        ({"a": [1, 0.5, None, True], "b": "x"}, {"b": "x", "a": [1, 0.5, None, True]}, True),
        ({"a": 1}, {"a": 2}, False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": 1}, {"a": True}, False),
        ("R…", "R12", True),
        ("R…", "S12", False),
        ("…", 7, True),
        ([1, "…"], [1, 2, 3], True),
        ([1, "…"], [2, 2, 3], False),
        ([1, 2], [1], False),
        ({}, [], False),
    ],
)
def test_an_answer_other_than_the_one_shown_is_noticed(shown: Any, got: Any, same: bool) -> None:
    assert matches(shown, got) is same


@pytest.mark.skipif(not has_tools(), reason="the pages' commands need bash and curl")
@pytest.mark.parametrize(
    ("page", "fault"),
    [
        ("```python\nprint(1)\n```\n\n```text\n2\n```\n", "line 5: the output is\n1"),
        ("```python\nraise ValueError\n```\n", "line 1: Traceback"),
        ("```console\n$ false\n```\n", "line 1: false"),
        ("```console\n$ curl $LDPRECOVER_URL/nothing\n```\n", "before the end of the page: 404"),
        (
            "```console\n$ curl $LDPRECOVER_URL/nothing\n$ true\n```\n",
            "before page.md, line 1: 404",
        ),
        (
            '```console\n$ curl $LDPRECOVER_URL/healthz\n```\n\n```json\n{"status": "ill"}\n```\n',
            "line 5: the answer is",
        ),
        ('```json\n{"reports": [1]}\n```\n', "line 1: JSON that answers nothing"),
        ("```ruby\nputs 1\n```\n", "line 1: nobody tries ruby"),
    ],
)
def test_wrong_examples_are_noticed(
    page: str, fault: str, server: ServerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "page.md"
    path.write_text(page)
    monkeypatch.setattr("tests.docs.markdown.Page.name", path.name)
    with pytest.raises(AssertionError, match=re.escape(fault)):
        Session(Page(path), server, tmp_path, {}).run()
