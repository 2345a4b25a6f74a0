"""Access keys, submissions and a clock for tests of access."""

from dataclasses import dataclass

import httpx
from tests.conftest import PACKED
from tests.server.conftest import InProcess

from ldprecover_server.access.access import create_key


@dataclass
class Clock:
    """A clock that tests set."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


def add_key(app: InProcess, scope: str, name: str | None = None) -> dict[str, str]:
    """Create a key as `ldprecover admin key create` does, and return its header."""
    key = create_key(app.storage, scope, name)
    return {"Authorization": f"Bearer {key}"}


def submit(
    app: InProcess, id: str, reports: int, headers: dict[str, str], key: str | None = None
) -> httpx.Response:
    """Submit GRR reports of item 1 under an idempotency key."""
    headers = PACKED | headers | ({"Idempotency-Key": key} if key else {})
    return app.post(f"/rounds/{id}/reports", content=reports * b"\1\0\0\0", headers=headers)
