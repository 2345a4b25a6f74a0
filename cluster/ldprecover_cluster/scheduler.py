"""The address of a Dask scheduler, and the TLS files to connect with."""

import re
from dataclasses import dataclass
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path

from ldprecover.errors import ParameterError

_ADDRESS = re.compile(
    r"(?P<scheme>[a-z0-9+.-]+)://(?:\[(?P<v6>[0-9a-fA-F:.]+)\]|(?P<host>[^\s:/\[\]@?#]+)):(?P<port>\d{1,5})"
)

TlsFiles = tuple[str | None, str | None, str | None]
"""PEM files of CA, certificate and key."""


@dataclass(frozen=True)
class Scheduler:
    """A scheduler's address `tls://HOST:PORT`, with PEM files of CA, certificate and key.

    Without files, Dask's own configuration applies. Any client of a scheduler can run code on its
    workers, so an address without TLS, `tcp://127.0.0.1:PORT`, must be local.

    Raises ParameterError for another address, for one or two of the three files, and for a file
    that does not exist.
    """

    url: str
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None

    def __post_init__(self) -> None:
        address = _ADDRESS.fullmatch(self.url)
        if (
            address is None
            or address["scheme"] not in ("tls", "tcp")
            or not 0 < int(address["port"]) < 1 << 16
        ):
            raise ParameterError(
                "the scheduler must be tls://HOST:PORT or tcp://127.0.0.1:PORT, not "
                f"{self.url[:200]!r}"
            )
        check_tls_files(self.tls)
        if address["scheme"] == "tcp":
            if not _is_local(address["v6"] or address["host"]):
                raise ParameterError(
                    f"the scheduler must be tls://HOST:PORT for another machine, not {self.url}: "
                    "without TLS anyone who reaches the scheduler can run code on its workers and "
                    "on this machine"
                )
            if any(self.tls):
                raise ParameterError(f"TLS files need a scheduler at tls://, not {self.url}")

    @property
    def tls(self) -> TlsFiles:
        """The files of CA, certificate and key."""
        return self.tls_ca, self.tls_cert, self.tls_key

    @property
    def is_encrypted(self) -> bool:
        """Whether the connection uses TLS."""
        return self.url.startswith("tls:")

    @staticmethod
    def missing_package() -> str | None:
        """Return a message if Dask is not installed; None otherwise."""
        if find_spec("distributed") is not None:
            return None
        return "a scheduler needs Dask: install it with `pip install 'ldprecover[cluster]'`"


def check_tls_files(tls: TlsFiles) -> None:
    """Raise ParameterError for one or two of three files, and for a file that does not exist."""
    files = dict(zip(("CA", "certificate", "key"), tls, strict=True))
    if any(tls) and not all(tls):
        missing = next(name for name, file in files.items() if not file)
        raise ParameterError(
            f"TLS needs three files, CA, certificate and key: the {missing} is missing"
        )
    for name, file in files.items():
        if file and not Path(file).is_file():
            raise ParameterError(
                f"the TLS {name} is not a file: {file} (docs/how-to/cluster.md says how to make it)"
            )


def _is_local(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
