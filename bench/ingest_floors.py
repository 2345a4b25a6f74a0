"""The floors that ingest is measured against: what the same machine can do with less, or with the plain way.

python -m bench.ingest_floors bare PORT WORKERS     a FastAPI route that reads the body and answers
python -m bench.ingest_floors transaction PORT DB   the same, with one durable SQLite transaction a request
"""

import json
import sqlite3
import sys

import uvicorn
from fastapi import FastAPI, Request

__all__: list[str] = []


def bare() -> FastAPI:
    app = FastAPI()

    @app.post("/reports")
    async def reports(request: Request) -> dict[str, object]:
        await request.body()
        return {"round": "x", "accepted": 1, "duplicate": False}

    return app


def transaction(path: str) -> FastAPI:
    app = FastAPI()
    connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE reports (key TEXT PRIMARY KEY, seed INTEGER, bucket INTEGER) WITHOUT ROWID")

    @app.post("/reports")
    async def reports(request: Request) -> dict[str, object]:
        report = json.loads(await request.body())
        row = (request.headers["idempotency-key"], report["seeds"][0], report["buckets"][0])
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO reports VALUES (?, ?, ?) ON CONFLICT DO NOTHING", row)
        connection.execute("COMMIT")
        return {"round": "x", "accepted": 1, "duplicate": False}

    return app


if __name__ == "__main__":
    kind, port, third = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    if kind == "bare":
        workers = int(third)
        uvicorn.run("bench.ingest_floors:bare", factory=True, port=port, workers=workers, access_log=False)
    else:
        uvicorn.run(transaction(third), port=port, access_log=False, log_level="warning")
