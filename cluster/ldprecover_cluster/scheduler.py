"""Where a cluster is: the address of Dask's scheduler, and the files of TLS that admit to it."""

import re
from dataclasses import dataclass
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path

from ldprecover.errors import ParameterError

_ADDRESS = re.compile(
    r"(?P<scheme>[a-z0-9+.-]+)://(?:\[(?P<v6>[0-9a-fA-F:.]+)\]|(?P<host>[^\s:/\[\]@?#]+)):(?P<port>\d{1,5})"
)


@dataclass(frozen=True)
class Scheduler:
    """A scheduler's address, `tls://HOST:PORT`, and what shows it who calls: a CA's certificate,
    one's own and its key.

    The files are PEM. Where none is given they are those that Dask's own configuration names.
    Whoever reaches a scheduler can run any code on its workers, so an address without TLS,
    `tcp://127.0.0.1:PORT`, is of this machine alone.

    Raises ParameterError for another address, for some of the three files without the others, and
    for one that is not there.
    """

    url: str
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None

    def __post_init__(self) -> None:
        found = _ADDRESS.fullmatch(self.url)
        if (
            found is None
            or found["scheme"] not in ("tls", "tcp")
            or not 0 < int(found["port"]) < 1 << 16
        ):
            raise ParameterError(
                f"scheduler must be tls://HOST:PORT or tcp://127.0.0.1:PORT, not {self.url[:200]!r}"
            )
        files = {"CA": self.tls_ca, "certificate": self.tls_cert, "key": self.tls_key}
        if any(files.values()) and not all(files.values()):
            missing = next(what for what, file in files.items() if not file)
            raise ParameterError(
                f"TLS takes three files, a CA, a certificate and its key: the {missing} is missing"
            )
        for what, file in files.items():
            if file and not Path(file).is_file():
                raise ParameterError(f"the {what} of TLS is not a file: {file}")
        if found["scheme"] == "tcp":
            if not _is_here(found["v6"] or found["host"]):
                raise ParameterError(
                    f"scheduler must be tls://HOST:PORT for another machine, not {self.url}: "
                    "whoever reaches a scheduler without TLS can run any code on its workers, and "
                    "on this machine"
                )
            if any(files.values()):
                raise ParameterError(
                    f"files of TLS are for a scheduler at tls://, not for {self.url}"
                )

    @property
    def is_encrypted(self) -> bool:
        """Whether it speaks TLS."""
        return self.url.startswith("tls:")

    @staticmethod
    def missing_package() -> str | None:
        """Return what has to be installed for a scheduler to be reached, in words; None where it is
        there.
        """
        if find_spec("distributed") is not None:
            return None
        return "a scheduler needs Dask: install it with `pip install 'ldprecover[cluster]'`"


def _is_here(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
