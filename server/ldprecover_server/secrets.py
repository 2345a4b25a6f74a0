"""Keeps secrets out of messages and child processes."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

_VARIABLES = {"LDPRECOVER_ADMIN_KEY", "LDPRECOVER_DATABASE_URL", "LDPRECOVER_KEY", "PGPASSWORD"}

# Host, port and path have only characters that leave no doubt where an unescaped password ends.
_URL = re.compile(
    r"(sqlite:///[^?]*|(?:[a-z][a-z0-9+.-]*:)?//)?+"
    r"(?:((?(1)(?:[^?#;&,\s]|[;&,\s](?!\w+=))*|[^?#=]*)@)?"
    r"((?:[\w.,-]|\[[\da-f:.]*\]|:\d{0,5}(?![\w.-]))*"
    r"(?:/(?:[^?#@:;=&%\n]|%(?!2[356]|3[abdf]|40))*)?)"
    r"([?#][^@]*)?|(.+))",
    re.IGNORECASE | re.DOTALL,
)


def without_secrets(url: str) -> str:
    """Return a URL, or what was meant to be one, as a message may show it.

    User and password are hidden up to the last @, and so are query and fragment. All but the scheme
    is hidden if secrets may be elsewhere, as in key=value pairs.

        >>> without_secrets("postgresql+psycopg://app:p@ssword@host/db?sslpassword=secret")
        'postgresql+psycopg://***@host/db?***'
    """
    match = _URL.fullmatch(url)
    assert match is not None  # the last group takes any text
    start, user, place, query, other = match.groups("")
    return f"{start}{user and '***@'}{place}{query[:1]}{(query or other) and '***'}"


@contextmanager
def hidden_variables() -> Iterator[dict[str, str]]:
    """Remove secrets from the environment of this process; yield them, and put them back.

    A process that is started meanwhile does not inherit them.
    """
    hidden = {name: os.environ.pop(name) for name in [*os.environ] if name.upper() in _VARIABLES}
    try:
        yield hidden
    finally:
        os.environ.update(hidden)
