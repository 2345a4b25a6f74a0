"""Addresses of schedulers: those of another machine are encrypted, or rejected."""

from pathlib import Path

import pytest

from ldprecover import ParameterError
from ldprecover_cluster import Scheduler


@pytest.mark.parametrize(
    "url",
    ["tcp://127.9.9.9:1", "tcp://localhost:8786", "tcp://[::1]:8786", "tls://dask.example:8786"],
)
def test_accepts_encrypted_and_local_addresses(url: str) -> None:
    assert Scheduler(url).is_encrypted == url.startswith("tls")


@pytest.mark.parametrize(
    "host",
    ["dask.example", "10.0.0.1", "[2001:db8::1]", "0.0.0.0", "127.0.0.1.example", "localhost."],
)
def test_rejects_another_machine_without_tls(host: str) -> None:
    with pytest.raises(ParameterError, match="without TLS anyone who reaches"):
        Scheduler(f"tcp://{host}:8786")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:8786",
        "http://127.0.0.1:8786",
        "tcp://127.0.0.1",
        "tcp://127.0.0.1:0",
        "tls://a:65536",
        "tcp://127.0.0.1:8786/",
        "tcp://127.0.0.1@evil:8786",
        "tls://a:1\n",
        " tls://a:1",
        "tls://a:1 tls://b:1",
        "tcp://127.0.0.1:8786,evil:1",
    ],
)
def test_rejects_other_text(url: str) -> None:
    with pytest.raises(
        ParameterError, match=r"scheduler must be tls://HOST:PORT or tcp://127\.0\.0\.1:PORT, not "
    ):
        Scheduler(url)


def test_tls_needs_three_existing_files(tmp_path: Path) -> None:
    (file := tmp_path / "a.pem").touch()
    a, missing = str(file), str(tmp_path / "none.pem")
    Scheduler("tls://a:1", a, a, a)
    with pytest.raises(ParameterError, match="the key is missing"):
        Scheduler("tls://a:1", a, a)
    with pytest.raises(ParameterError, match=r"the TLS certificate is not a file: .*none\.pem"):
        Scheduler("tls://a:1", a, missing, a)
    with pytest.raises(ParameterError, match=r"not tcp://127\.0\.0\.1:1"):
        Scheduler("tcp://127.0.0.1:1", a, a, a)
