"""Warnings about keys and tickets that travel unencrypted. Imports no HTTP library."""

import warnings
from ipaddress import ip_address
from urllib.parse import urlsplit

_warned: set[tuple[str, str]] = set()
"""Host and kind of secret of each warning of this process."""


class InsecureTransportWarning(UserWarning):
    """A key or ticket is sent over plain http:// to another machine.

    Anyone on the network path can read and use it.
    """


def is_loopback(url: str) -> bool:
    """Return whether a URL names this machine, so that requests stay on it."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def warn_if_unencrypted(url: str, secret: str, *, stacklevel: int = 2) -> None:
    """Warn if a "key" or "ticket" goes to another machine without TLS; once a host and process."""
    parts = urlsplit(url)
    warning = (parts.netloc, secret)
    if parts.scheme == "http" and warning not in _warned and not is_loopback(url):
        warnings.warn(
            f"the {secret} goes to {parts.netloc} over plain http, where it can be read on the way "
            "and used by others: use https",
            InsecureTransportWarning,
            stacklevel=stacklevel + 1,
        )
        _warned.add(warning)  # not reached if a filter turns the warning into an error
