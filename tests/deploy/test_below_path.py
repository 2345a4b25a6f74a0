"""The server below a path of another host, by the configuration that deploying.md gives."""

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urldefrag, urljoin

import httpx
import pytest
from tests.conftest import ServerProcess
from tests.deploy.tools import ROOT

from ldprecover_client import Client

pytestmark = pytest.mark.sqlite

NGINX = shutil.which("nginx", path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin")
CONFIGURATION = """
{user} daemon off; pid {folder}/pid; error_log stderr crit; events {{ }}
http {{
    access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/a; uwsgi_temp_path {folder}/b; scgi_temp_path {folder}/c;
    server {{ listen 127.0.0.1:{port}; {location} }}
}}
"""


@pytest.fixture
def below(server: ServerProcess, tmp_path: Path) -> Iterator[httpx.Client]:
    """Calls of the server below /ldp."""
    if NGINX is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("nginx is not installed")
    text = (ROOT / "docs" / "how-to" / "deploying.md").read_text(encoding="utf-8")
    (location,) = re.findall(r"```\n(location /ldp/.*?)```", text, re.DOTALL)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        port = listener.getsockname()[1]
        (tmp_path / "nginx.conf").write_text(
            CONFIGURATION.format(
                user="user root;" if os.geteuid() == 0 else "",
                folder=tmp_path,
                port=port,
                location=location.replace("http://127.0.0.1:8000", server.url),
            )
        )
        with subprocess.Popen(
            [NGINX, "-p", tmp_path, "-e", "stderr", "-c", tmp_path / "nginx.conf"],
            env={**os.environ, "NGINX": f"{listener.fileno()};"},
            pass_fds=[listener.fileno()],
        ) as nginx:
            url = f"http://127.0.0.1:{port}/ldp/"
            with httpx.Client(base_url=url, headers=server.admin, trust_env=False) as http:
                yield http
            nginx.terminate()


def test_addresses_in_responses_are_below_the_path(
    server: ServerProcess, below: httpx.Client
) -> None:
    round = {"protocol": "grr", "epsilon": 1, "domain_size": 4}
    opened = below.post("rounds", json=round)
    assert opened.headers["location"] == f"/ldp/rounds/{opened.json()['id']}"
    for body, status in (([1], 202), ([9], 422)):
        sent = below.post(f"rounds/{opened.json()['id']}/reports", json={"reports": body})
        assert sent.status_code == status
    problems, slug = urldefrag(urljoin(str(sent.url), sent.json()["type"]))
    assert f'<h2 id="{slug}">' in below.get(problems).text
    pages = [below.get(path) for path in ("", "docs", "page/survey.html", "page/help.html")]
    for page in pages:
        links = re.findall(r"(?:src|href|data-server)=\"([^\"#]+)|url: '(.*?)'", page.text)
        assert links
        for link in map("".join, links):
            assert below.get(urljoin(str(page.url), link)).status_code == 200
    document = below.get("openapi.json")
    (api,) = document.json()["servers"]
    assert urljoin(str(document.url), api["url"]) == str(below.base_url)
    assert [below.get(path).status_code for path in ("metrics", "%72eadyz", "healthz")] == [
        403,
        403,
        200,
    ]
    with Client(str(below.base_url)) as client:
        assert client.round(opened.json()["id"]).n == 1


def test_only_addresses_follow_the_header(server: ServerProcess) -> None:
    for prefix, root in (("/rounds", "/rounds"), ("/a/b.c/", "/a/b.c"), ("//x", ""), ('/"', "")):
        answer = server.get("/rounds/metrics", headers={"X-Forwarded-Prefix": prefix})
        assert answer.json()["type"] == f"{root}/docs/errors#round-not-found"
        assert answer.headers["vary"] == "X-Forwarded-Prefix"
