"""Keys, tickets and passwords: in no message, log or answer."""

import contextlib
import traceback
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.conftest import NewDatabase, StartServer

from ldprecover_server import Settings, check, serve
from ldprecover_server.errors import ConfigurationError, ServiceError
from ldprecover_server.storage import Storage

MARK = "Zq7xWv2kZq7xWv2k"
PARTS = [MARK[start : start + 4] for start in range(13)]
PG = "postgresql+psycopg://"
NOWHERE = "@127.0.0.1:1/db"


def secrets_in(text: str) -> list[str]:
    """Return what a text has of the secret."""
    return [part for part in PARTS if part in text]


@pytest.mark.sqlite
@pytest.mark.parametrize(
    "url",
    [
        f"{PG}app:{MARK}{NOWHERE}",
        f"{PG}app:p@{MARK}{NOWHERE}",
        f"{PG}app:{MARK}?{MARK}{NOWHERE}",
        f"{PG}app:{MARK}#{MARK}{NOWHERE}",
        f"{PG}app:1/{MARK}{NOWHERE}",
        f"{PG}app:1@{MARK}/{MARK}{NOWHERE}",
        f"{PG}app:1@{MARK}?{MARK}{NOWHERE}",
        f"{PG}a/p:{MARK}{NOWHERE}",
        f"{PG}app:{MARK}/db",
        f"{PG}app:{MARK}",
        f"{PG}/app:{MARK}{NOWHERE}",
        f"{PG}app%3A{MARK}%40127.0.0.1/db",
        f"{PG}/app%3A{MARK}%40127.0.0.1",
        f"{PG}app{NOWHERE}?password={MARK}&sslpassword={MARK}",
        f"{PG}app{NOWHERE}?password=a@{MARK}",
        f"{PG}app{NOWHERE}?password=a&{MARK}=x",
        f"{PG}app{NOWHERE}?password={MARK}&port=x",
        f"{PG}app:1@127.0.0.1?{MARK}=x{NOWHERE}",
        f"{PG}app{NOWHERE};password={MARK}",
        f"{PG}app{NOWHERE}#{MARK}",
        f"{PG}app:{MARK}@127.0.0.1:1,127.0.0.1:2/db",
        f"{PG}app:{MARK}@[::1/db",
        f"postgres://app:{MARK}{NOWHERE}",
        f"mysql://app:{MARK}{NOWHERE}",
        f"sqlite:///no/such/folder.db?key={MARK}",
        f"//app:{MARK}{NOWHERE}",
        f"app:{MARK}{NOWHERE}",
        f"{PG[:-1]}app:{MARK}{NOWHERE}",
        f"host=127.0.0.1 port=1 user=app password={MARK}",
        f"{MARK}://x",
        MARK,
    ],
)
def test_errors_of_a_database_url_show_no_secret(
    url: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    # A server would wait for the database, after it has said so: here that is an error.
    monkeypatch.setattr("ldprecover_server.storage.storage._AWAY_SECONDS", "no number")
    for run in (serve, check):
        with pytest.raises((ConfigurationError, ServiceError, TypeError)) as caught:
            run(Settings(port=0, database_url=url))
        assert secrets_in("".join(traceback.format_exception(caught.value))) == []
    with contextlib.suppress(Exception), contextlib.closing(Storage(url)) as storage:
        assert secrets_in(storage.database.name) == []
        storage.rounds.find("current")
    assert secrets_in(caplog.text + "".join(capfd.readouterr())) == []


def test_a_server_never_shows_its_secrets(
    start_server: StartServer, new_database: NewDatabase, tmp_path: Path
) -> None:
    with new_database(tmp_path) as url:
        if url.startswith(PG):
            url = url.replace("postgres@", f"postgres:{MARK}@") + f"&sslpassword={MARK}"
        server = start_server(url, admin_key=MARK, log_format="json")
        server.admin = {"Authorization": f"Bearer {MARK}"}  # type: ignore[misc]
        round = server.open_round(access="ticket")["id"]
        (ticket,) = server.mint(f"/rounds/{round}", 1)
        report, holder = {"reports": [1]}, {"Authorization": f"Ticket {ticket}"}
        reports = f"/rounds/{round}/reports"
        shown = [
            *server.lines,
            server.post(reports, json=report, headers=holder).text,
            server.post(reports, json={"reports": [2]}, headers=holder).text,
            server.post(f"/rounds/x/reports?ticket={ticket}", json=report, headers=holder).text,
            server.post(reports, json=report, headers={"Authorization": f"Ticket {MARK}"}).text,
            server.get("/rounds", headers={"Authorization": f"Bearer {MARK}x"}).text,
        ]
        paths = ["/version", "/metrics", "/healthz", "/readyz", "/openapi.json", "/docs", "/key"]
        shown += [server.get(path, headers=server.admin).text for path in paths]
        with server.sql() as database:
            database.execute(sa.text("DROP TABLE segments"))
            database.execute(sa.text("ALTER TABLE rounds RENAME TO lost"))
        failed = server.get("/rounds/x", headers=server.admin)
        assert failed.status_code in (500, 503)
        shown += [failed.text, server.get("/readyz").text]
        server.kill()
        log = server.log.read_text()
        assert log
        for text in (*shown, log):
            assert secrets_in(text) == []
            assert ticket not in text
