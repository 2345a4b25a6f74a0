"""`quarantine`: prints what a round has set aside, from its database."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldprecover import OUE, RoundParameters
from ldprecover_server.ingest.batches import Batch, Submission
from ldprecover_server.storage import Storage

D = 102


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A database with a round that has set two reports of one item each aside, and has
    counted one.
    """
    url = f"sqlite:///{tmp_path / 'ldprecover.db'}"
    oracle = OUE(0.5, D)
    rows = np.packbits(np.arange(D) < np.array([1, 40, 1])[:, None], axis=1, bitorder="little")
    with closing(Storage(url)) as storage:
        storage.prepare()
        parameters = RoundParameters("oue", 0.5, tuple(map(str, range(D))), quarantine=True)
        seq = storage.rounds.open("R1", "cities", parameters).seq
        batch = Batch(seq, [Submission(seq, oracle, "a", rows.tobytes(), quarantine=True)])
        batch.count()
        storage.commit([batch])
    return url


@pytest.mark.parametrize("round", [(), ("cities",), ("R1",)], ids=["current", "name", "id"])
def test_what_was_set_aside_is_printed_with_its_reason(
    run: Any, url: str, round: tuple[str, ...]
) -> None:
    done = run("quarantine", *round, "--database-url", url)
    assert done.code == 0
    (line,) = done.out.splitlines()
    found = json.loads(line)
    assert (found["reason"], found["reports"]) == ("size", 2 * ["1" + (D - 1) * "0"])
    assert found["hour"].endswith(":00:00+00:00")


def test_a_round_that_is_not_there_is_said_so(run: Any, url: str) -> None:
    done = run("quarantine", "nowhere", "--database-url", url)
    assert done.code == 1
    assert "no round has the id or name" in done.err
