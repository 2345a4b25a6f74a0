"""`quarantine`: prints the quarantined reports of a round, from its database."""

import json
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Run

from ldprecover import OUE, RoundParameters
from ldprecover_server.ingest.batches import Batch, Submission
from ldprecover_server.storage import Storage

D = 102


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A database with a round of two quarantined reports of one item, and a counted one."""
    url = f"sqlite:///{tmp_path / 'ldprecover.db'}"
    oracle = OUE(0.5, D)
    rows = np.packbits(np.arange(D) < np.array([1, 40, 1])[:, None], axis=1, bitorder="little")
    with closing(Storage(url)) as store:
        store.prepare()
        parameters = RoundParameters("oue", 0.5, tuple(map(str, range(D))), quarantine=True)
        seq = store.rounds.open("R1", "cities", parameters).seq
        batch = Batch(seq, [Submission(seq, oracle, "a", rows.tobytes(), quarantine=True)])
        batch.count()
        store.commit([batch])
    return url


@pytest.mark.parametrize("round", ["", "cities", "R1"], ids=["current", "name", "id"])
def test_prints_quarantined_reports_with_their_reason(run: Run, url: str, round: str) -> None:
    line = json.loads(run(f"admin quarantine {round} --database-url {url}").succeeds().out)
    assert (line["reason"], line["reports"]) == ("size", 2 * ["1" + (D - 1) * "0"])
    assert line["hour"].endswith(":00:00+00:00")


def test_rejects_a_missing_round(run: Run, url: str) -> None:
    error = run(f"admin quarantine nowhere --database-url {url}").fails(1)
    assert "no round has the id or name" in error
