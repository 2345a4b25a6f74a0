"""What an operator sees of the server, and what it does on bad days."""

import asyncio
import itertools
import json
import logging
import os
import re
import resource
import subprocess
import sys
import threading
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import sqlalchemy as sa
from tests.conftest import StartServer, samples_of
from tests.server.conftest import InProcess, StartInProcess, problem_of

from ldprecover.protocols import MAX_DOMAIN_SIZE
from ldprecover_client import bulk
from ldprecover_server import limits, logs
from ldprecover_server.housekeeping import Housekeeping
from ldprecover_server.http import middleware
from ldprecover_server.metrics import Metrics, shared_by_processes
from ldprecover_server.storage import Storage

pytestmark = pytest.mark.sqlite


ONE = b"\1\0\0\0"


def scraped(app: InProcess) -> dict[tuple[str, ...], float]:
    """Return every sample as {(name, values of the labels of the manifest ...): value}."""
    labels = {metric.name: metric.labels for metric in Metrics().manifest}
    return {
        (s.name, *(s.labels[label] for label in labels.get(s.name, ()))): s.value
        for s in samples_of(app.get("/metrics").text)
    }


def test_metrics_count_what_was_answered(start_in_process: StartInProcess) -> None:
    app = start_in_process()
    round = app.open_round()
    assert app.submit(round, 3 * ONE, "a").status_code == 202
    assert app.submit(round, 3 * ONE, "a").json()["duplicate"]
    assert app.submit(round, ONE, "a").status_code == 422
    assert app.submit(round, b"\x09\0\0\0", "b").status_code == 422
    assert app.get(f"/rounds/{round}/frequencies").status_code == 200
    assert app.get("/nowhere").status_code == 404
    samples = scraped(app)
    assert samples["ldprecover_submissions_total",] == 1
    assert samples["ldprecover_reports_total",] == 3
    assert samples["ldprecover_duplicates_total",] == 1
    assert samples["ldprecover_refusals_total", "idempotency-key-reused"] == 1
    assert samples["ldprecover_refusals_total", "invalid-report"] == 1
    assert samples["ldprecover_requests_total", "POST", "/rounds/{round}/reports", "202"] == 2
    assert samples["ldprecover_requests_total", "POST", "/rounds", "201"] == 1
    assert samples["ldprecover_requests_total", "GET", "/rounds/{round}/frequencies", "200"] == 1
    assert samples["ldprecover_requests_total", "GET", "none", "404"] == 1
    assert samples["ldprecover_commit_submissions_sum",] == 3
    assert (
        samples["ldprecover_commit_seconds_count",]
        == samples["ldprecover_counting_seconds_count",]
        == 3
    )
    assert samples["ldprecover_pool_connections",] == 1, "the writer keeps one"
    assert not any(round in part for name in samples for part in name)


def test_requests_are_timed_by_route_from_head_to_answer(
    start_in_process: StartInProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look at this clock takes 10 seconds, and a request looks twice."""
    clock = itertools.count(step=10.0)
    monkeypatch.setattr(middleware, "perf_counter", lambda: next(clock))
    app = start_in_process()
    round = app.open_round()
    app.submit(round, ONE, "a")
    app.submit(round, b"\x09\0\0\0", "b")
    times = {
        (
            s.labels["method"],
            s.labels["route"],
            s.name.rpartition("_")[2],
            s.labels.get("le"),
        ): s.value
        for s in samples_of(app.get("/metrics").text)
        if s.name.startswith("ldprecover_request_seconds_")
    }
    reports = "POST", "/rounds/{round}/reports"
    assert times[*reports, "count", None] == times[*reports, "bucket", "10.0"] == 2
    assert times[*reports, "bucket", "2.5"] == 0
    assert times[*reports, "sum", None] == 20
    assert times["POST", "/rounds", "count", None] == 1


def test_metrics_are_those_of_the_manifest(in_process: InProcess) -> None:
    text = in_process.get("/metrics").text
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    rendered = {name: kind for name, kind in types.items() if not name.endswith("_created")}
    assert rendered == {metric.name: metric.kind for metric in Metrics().manifest}


_PROCESS = """
from ldprecover_server.metrics import Metrics
metrics = Metrics()
metrics.reports.inc(2)
metrics.queue.set(5)
metrics.last_housekeeping.set({ended})
metrics.rows_to_delete.set({rows})
print(metrics.render().decode())
"""


def test_metrics_cover_all_processes_and_drop_dead_gauges() -> None:
    """The first ended its housekeeping last, and what it counted is history."""
    with shared_by_processes():
        for reports, ended, rows in ((2.0, 3600.0, 7.0), (4.0, 1800.0, 3.0)):
            process = [sys.executable, "-c", _PROCESS.format(ended=ended, rows=rows)]
            done = subprocess.run(process, check=True, text=True, capture_output=True)
            samples = {s.name: s.value for s in samples_of(done.stdout)}
            assert samples["ldprecover_reports_total"] == reports
            assert samples["ldprecover_queue_submissions"] == 5
            assert samples["ldprecover_last_housekeeping_timestamp_seconds"] == 3600
            assert samples["ldprecover_rows_to_delete"] == rows
        folder = Path(os.environ["PROMETHEUS_MULTIPROC_DIR"])
        assert folder.is_dir()
    assert not folder.exists()


def test_responses_have_their_own_or_the_given_request_id(in_process: InProcess) -> None:
    ids = {in_process.get("/healthz").headers["x-request-id"] for _ in range(5)}
    assert len(ids) == 5
    assert in_process.get("/nowhere", headers={"X-Request-ID": "trace-0123.a_B"}).headers[
        "x-request-id"
    ] == ("trace-0123.a_B")
    for invalid in ("short", "x" * 65, 'line"break{}', "with space"):
        assert (
            in_process.get("/healthz", headers={"X-Request-ID": invalid}).headers["x-request-id"]
            != invalid
        )


@pytest.mark.parametrize(
    ("protocol", "size", "fit"), [("olh", 6, 12), ("oue", 1, 1000), ("grr", 4, 1000)]
)
def test_a_submission_may_take_only_so_much_counting(
    start_in_process: StartInProcess,
    monkeypatch: pytest.MonkeyPatch,
    protocol: str,
    size: int,
    fit: int,
) -> None:
    """OLH hashes every item for every report; the others are counted as fast as they are read."""
    monkeypatch.setattr(limits, "SUBMISSION_CELLS", 99)
    app = start_in_process(reports_per_submission=1000)
    round = app.open_round(protocol, domain_size=8)
    refused = app.submit(round, bytes((fit + 1) * size), "a")
    assert problem_of(refused) == "too-many-reports"
    assert f"at most {fit} reports" in refused.json()["detail"]
    assert app.get(f"/rounds/{round}").json()["n"] == 0
    assert app.submit(round, bytes(fit * size), "a").json()["accepted"] == fit


def test_one_report_always_fits(
    start_in_process: StartInProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SUBMISSION_CELLS", 1)
    app = start_in_process()
    assert app.submit(app.open_round("olh", domain_size=8), bytes(6), "a").status_code == 202


def test_the_clients_batches_fit_a_server() -> None:
    """Of OLH over the largest domain too."""
    assert limits.SUBMISSION_CELLS == bulk.MAX_HASH_TESTS
    assert bulk.BATCH_SIZE * MAX_DOMAIN_SIZE <= bulk.MAX_HASH_TESTS


def test_a_round_of_too_many_items_is_refused(start_in_process: StartInProcess) -> None:
    app = start_in_process(max_domain_size=5)
    app.open_round(domain_size=5)
    assert problem_of(app.try_open(domain_size=6)) == "invalid-parameter"


class Full:
    """A database that takes not one page more, as on a full disk."""

    def __init__(self, storage: Storage) -> None:
        self._engine = storage.database.engine

    def __enter__(self) -> None:
        sa.event.listen(self._engine, "checkout", self._shut)

    def __exit__(self, *error: object) -> None:
        sa.event.remove(self._engine, "checkout", self._shut)
        sa.event.listen(self._engine, "checkout", _open)

    @staticmethod
    def _shut(connection: Any, *more: object) -> None:
        # Set to less than there is, SQLite takes what there is.
        connection.execute("PRAGMA max_page_count=1")


def _open(connection: Any, *more: object) -> None:
    connection.execute("PRAGMA max_page_count=1073741823")


def test_nearly_full_disk_is_logged_once(
    start_in_process: StartInProcess, caplog: pytest.LogCaptureFixture
) -> None:
    app = start_in_process(min_free_bytes=1 << 60)
    app.app.state.services.submissions.readiness.seconds = 0.0
    for _ in range(2):
        assert problem_of(app.get("/readyz")) == "storage-full"
    assert caplog.text.count("the server is not ready: the disk has") == 1


def test_full_disk_is_507_and_recovers(start_in_process: StartInProcess) -> None:
    app = start_in_process()
    round = app.open_round()
    assert app.submit(round, 2 * ONE, "before").status_code == 202
    with Full(app.storage):
        refused = app.submit(round, 100_000 * ONE, "after")
        assert problem_of(refused) == "storage-full"
        assert int(refused.headers["retry-after"]) >= 1
        assert problem_of(app.get("/readyz")) == "storage-full"
        assert app.frequencies(round)["n"] == 2
    assert app.get("/readyz").status_code == 200
    assert app.submit(round, 100_000 * ONE, "after").json()["duplicate"] is False
    assert app.frequencies(round)["n"] == 100_002


def test_size_limit_of_files_is_not_ready(start_in_process: StartInProcess) -> None:
    """The log of the database cannot grow, although the disk has room."""
    app = start_in_process()
    app.open_round()
    assert app.get("/readyz").status_code == 200
    log = Path(f"{app.storage.database.name}-wal")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size, hard))
    try:
        answer = app.get("/readyz")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert problem_of(answer) == "store-unavailable"
    assert app.get("/readyz").status_code == 200


def test_all_who_ask_share_one_check_for_a_second(
    start_in_process: StartInProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = start_in_process()
    check = Mock(wraps=app.storage.check_writable)
    monkeypatch.setattr(app.storage, "check_writable", check)
    paths = 20 * ["/readyz", "/metrics"]
    # Without the second, those share a check that start while it runs.
    for seconds, limit in ((3600.0, 1), (0.0, 15)):
        app.readiness.seconds = seconds
        check.reset_mock()
        answers = app.gather(*(("GET", path, {}) for path in paths))
        assert {answer.status_code for answer in answers} == {200}
        assert 1 <= check.call_count <= limit
    app.readiness.seconds = 3600.0
    check.reset_mock()
    assert app.get("/readyz").status_code == 200
    assert check.call_count == 0


@pytest.mark.both
def test_readiness_writes_and_the_database_does_not_grow(start_in_process: StartInProcess) -> None:
    storage = start_in_process().storage
    is_postgres = storage.database.dialect == "postgresql"

    def position() -> object:
        with storage.database.read() as connection:
            if is_postgres:
                return connection.exec_driver_sql("SELECT pg_current_wal_lsn()").scalar_one()
        return Path(f"{storage.database.name}-wal").read_bytes()

    def size() -> object:
        query = (
            "SELECT sum(pg_total_relation_size(relid)), sum(n_tup_ins + n_tup_upd) "
            "FROM pg_stat_xact_user_tables"
            if is_postgres
            else "PRAGMA page_count"
        )
        with storage.database.read() as connection:
            return connection.exec_driver_sql(query).one()

    before = size()
    for _ in range(3):
        position_before = position()
        storage.check_writable()
        assert position() != position_before
    assert size() == before


def on_disk(storage: Storage) -> bytes:
    """Return every byte of the database and its write-ahead log."""
    path = Path(storage.database.name)
    return b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*"))


def secret_report(d: int) -> bytes:
    """Return an OUE report that no file has by chance."""
    return np.packbits(
        np.random.default_rng(5).integers(0, 2, d, dtype=np.uint8), bitorder="little"
    ).tobytes()


@pytest.mark.parametrize("words", ["forever", "none"])
def test_reports_are_stored_unless_retention_is_none(
    start_in_process: StartInProcess, words: str
) -> None:
    app = start_in_process()
    round = app.open_round("oue", domain_size=800, retention=words)
    assert app.get(f"/rounds/{round}").json()["retention"] == words
    report = secret_report(800)
    assert app.submit(round, report, "a").status_code == 202
    assert app.submit(round, report, "a").json()["duplicate"]
    assert app.close_round(round).status_code == 200
    again = app.submit(round, report, "a")
    assert (again.status_code, again.json()["duplicate"]) == (202, True)
    assert problem_of(app.submit(round, report, "b")) == "round-closed"
    counts = app.frequencies(round)["counts"]
    assert counts == np.unpackbits(np.frombuffer(report, np.uint8), bitorder="little").tolist()
    assert (report in on_disk(app.storage)) is (words == "forever")


def test_deleting_a_round_leaves_no_report_on_the_disk(start_in_process: StartInProcess) -> None:
    app = start_in_process()
    round = app.open_round("oue", domain_size=800)
    report = secret_report(800)
    assert app.submit(round, report, "a").status_code == 202
    assert report in on_disk(app.storage)
    assert app.delete_round(round).status_code == 204
    assert report not in on_disk(app.storage)


def test_stopping_housekeeping_waits_for_its_chunk(in_process: InProcess) -> None:
    """The database is closed next, and nobody may hold a connection to it then."""
    begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    class Slow(Housekeeping):
        def once(self) -> bool:
            begun.set()
            assert go_on.wait(30)
            ended.set()
            return False

    async def end() -> None:
        task = asyncio.create_task(Slow(in_process.storage).run())
        assert await asyncio.to_thread(begun.wait, 30)
        task.cancel()
        await asyncio.wait([task], timeout=0)
        assert not task.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended.is_set()

    in_process.run(end())


@pytest.fixture
def root_logger() -> Any:
    """Put the root logger back as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield root
    root.handlers[:], root.level = handlers, level


def test_console_logs_have_time_and_request_id(
    capsys: pytest.CaptureFixture[str], root_logger: logging.Logger
) -> None:
    logs.configure("console")
    logger = logging.getLogger("some.where")
    record = logger.makeRecord(
        "some.where", logging.WARNING, __file__, 1, "it %s", ("failed",), None
    )
    record.created = datetime(2026, 1, 2, 3, 4, 5, 678_000, UTC).timestamp()
    token = logs.request_id.set("id-of-the-request")
    logger.handle(record)
    logs.request_id.reset(token)
    logger.handle(record)
    line = "2026-01-02T03:04:05.678+00:00 WARNING some.where: it failed"
    assert capsys.readouterr().err == f"{line} [request id-of-the-request]\n{line}\n"


def test_json_logs_have_one_object_a_line(
    capsys: pytest.CaptureFixture[str], root_logger: logging.Logger
) -> None:
    logs.configure("json")
    token = logs.request_id.set("id-of-the-request")
    try:
        raise ValueError("two\nlines")
    except ValueError:
        logging.getLogger("some.where").exception("it %s", "failed")
    logs.request_id.reset(token)
    logging.getLogger("some.where").warning("outside")
    logging.getLogger("alembic.runtime").info("a step")
    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    assert datetime.fromisoformat(first["time"]).utcoffset() == timedelta()
    assert (first["level"], first["logger"], first["message"]) == (
        "ERROR",
        "some.where",
        "it failed",
    )
    assert first["request_id"] == "id-of-the-request"
    assert first["exception"].endswith("two\nlines")
    assert second["message"] == "outside"
    assert "request_id" not in second


def test_server_log_is_json(start_server: StartServer) -> None:
    """Requests that are not HTTP take one line a second."""
    stopped = "import time; time.monotonic = lambda: 1.0; "
    server = start_server(first=stopped, log_format="json")
    round = server.open_round()["id"]
    server.submit(round, b"\x09\0\0\0")
    for _ in range(20):
        assert server.talk(b"no request\r\n\r\n").startswith(b"HTTP/1.1 400")
    server.kill()
    text = server.log.read_text()
    assert text.count("Invalid HTTP request") == 1
    assert "uvicorn.error" in [json.loads(line)["logger"] for line in text.splitlines()]


def test_database_errors_are_logged_without_parameters(tmp_path: Path) -> None:
    with closing(Storage(f"sqlite:///{tmp_path / 'x.db'}")) as storage:
        with (
            pytest.raises(sa.exc.DBAPIError) as caught,
            storage.database.engine.connect() as connection,
        ):
            connection.execute(
                sa.text("INSERT INTO nowhere VALUES (:report)"), {"report": "a-report"}
            )
        assert "a-report" not in str(caught.value)
