"""The directory in which the processes of a server add up what they count."""

import os
import tempfile
from pathlib import Path

import pytest

from ldprecover_server.metrics import shared_by_processes


def test_ended_server_leaves_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with shared_by_processes():
        (directory,) = tmp_path.iterdir()
        assert os.environ["PROMETHEUS_MULTIPROC_DIR"] == str(directory)
        (directory / "counter_1.db").touch()
    assert list(tmp_path.iterdir()) == []
    assert "PROMETHEUS_MULTIPROC_DIR" not in os.environ
