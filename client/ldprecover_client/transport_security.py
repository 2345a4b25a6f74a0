"""Whether a key or a ticket can be read on its way to a server. Knows no HTTP library."""

import warnings
from ipaddress import ip_address
from urllib.parse import urlsplit

_warned: set[tuple[str, str]] = set()


class InsecureTransportWarning(UserWarning):
    """A key or a ticket goes over plain http:// to another machine, where whoever carries it can
    read and use it.
    """


def is_this_machine(url: str) -> bool:
    """Return whether a server's URL names this machine, so that nothing leaves it."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def warn_if_readable(url: str, secret: str, *, stacklevel: int = 2) -> None:
    """Warn where a secret, "key" or "ticket", would go to another machine without TLS: once a
    machine and process.
    """
    parts = urlsplit(url)
    warned = (parts.netloc, secret)
    if parts.scheme == "http" and warned not in _warned and not is_this_machine(url):
        warnings.warn(
            f"the {secret} goes to {parts.netloc} over plain http, where it can be read on the way "
            "and used by "
            "others: use https",
            InsecureTransportWarning,
            stacklevel=stacklevel + 1,
        )
        _warned.add(warned)  # unless a filter has made an error of it
