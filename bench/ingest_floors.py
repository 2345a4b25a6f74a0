"""The floors that ingest is measured against: the same machine with less work, or the plain way.

python -m bench.ingest_floors bare PORT WORKERS     a FastAPI route that reads the body
python -m bench.ingest_floors transaction PORT DB   and one durable SQLite transaction a request
python -m bench.ingest_floors group PORT DB         and one for all requests that wait
"""

import asyncio
import json
import queue
import sqlite3
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn
from fastapi import FastAPI, Request

__all__: list[str] = []


def route(store: Callable[[Request], Awaitable[object]]) -> FastAPI:
    """Return an application that responds once `store` has returned."""
    app = FastAPI()

    @app.post("/reports")
    async def reports(request: Request) -> dict[str, object]:
        await store(request)
        return {"round": "x", "accepted": 1, "duplicate": False}

    return app


def bare() -> FastAPI:
    return route(Request.body)


_INSERT = "INSERT INTO reports VALUES (?, ?, ?) ON CONFLICT DO NOTHING"


def database(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(
        "CREATE TABLE reports (key TEXT PRIMARY KEY, seed INTEGER, bucket INTEGER) WITHOUT ROWID"
    )
    return connection


async def row_of(request: Request) -> tuple[str, int, int]:
    report = json.loads(await request.body())
    return request.headers["idempotency-key"], report["seeds"][0], report["buckets"][0]


def transaction(path: str) -> FastAPI:
    connection = database(path)

    async def store(request: Request) -> None:
        row = await row_of(request)
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(_INSERT, row)
        connection.execute("COMMIT")

    return route(store)


def group(path: str) -> FastAPI:
    """A thread commits what waits, durably, and then answers it: the least that group commit can
    do.
    """
    connection = database(path)
    waiting: queue.SimpleQueue[tuple[Any, asyncio.Future[None]]] = queue.SimpleQueue()

    def answer(done: list[asyncio.Future[None]]) -> None:
        for future in done:
            if not future.done():
                future.set_result(None)

    def write() -> None:
        while True:
            batch = [waiting.get()]
            while not waiting.empty():
                batch.append(waiting.get())
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(_INSERT, [row for row, _ in batch])
            connection.execute("COMMIT")
            batch[0][1].get_loop().call_soon_threadsafe(answer, [future for _, future in batch])

    threading.Thread(target=write, daemon=True).start()

    async def store(request: Request) -> None:
        stored = asyncio.get_running_loop().create_future()
        waiting.put((await row_of(request), stored))
        await stored

    return route(store)


if __name__ == "__main__":
    kind, port, third = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    if kind == "bare":
        workers = int(third)
        uvicorn.run(
            "bench.ingest_floors:bare", factory=True, port=port, workers=workers, access_log=False
        )
    else:
        sender = transaction if kind == "transaction" else group
        uvicorn.run(sender(third), port=port, access_log=False, log_level="warning")
