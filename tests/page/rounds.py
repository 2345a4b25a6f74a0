"""Rounds with reports for the page's tests."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from tests.conftest import ServerProcess

from ldprecover import frequency_oracle
from ldprecover.protocols import wire

MARKUP = "<b>bold</b><img src=x onerror=alert(1)>"
CITIES = (
    "Lagos",
    "Delhi",
    "São Paulo",
    "Cairo",
    "Osaka",
    "Lima",
    MARKUP,
    '=HYPERLINK("x")',
    *map("town {}".format, range(18)),
)


def shares(d: int) -> np.ndarray:
    """Zipf's law over d items."""
    weights = 1 / np.arange(1, d + 1)
    return weights / weights.sum()


def report(
    server: ServerProcess,
    opened: dict[str, Any],
    n: int,
    malicious: int = 0,
    targets: Sequence[int] = (),
    seed: int = 1,
) -> None:
    """Send reports of n genuine users by Zipf's law, and of malicious ones, each of a target."""
    rng = np.random.default_rng(seed)
    oracle = frequency_oracle(opened["protocol"], opened["epsilon"], opened["domain_size"])
    values = rng.choice(oracle.domain_size, size=n, p=shares(oracle.domain_size))
    for reports in (
        oracle.perturb(values, rng),
        oracle.encode(rng.choice(targets, size=malicious)) if malicious else None,
    ):
        if reports is not None:
            assert server.submit(opened["id"], wire.pack(reports)).status_code == 202


def poisoned(server: ServerProcess, protocol: str = "oue", **fields: Any) -> dict[str, Any]:
    """A round of 4,000 users and 400 malicious ones that raise the items 19, 20 and 21."""
    options: dict[str, Any] = {"items": CITIES, "epsilon": 3.0} | fields
    opened = server.open_round(protocol, **options)
    report(server, opened, 4000, 400, (19, 20, 21))
    return opened


def raised(server: ServerProcess, **fields: Any) -> dict[str, Any]:
    """A round of 4,000 users and 400 malicious ones that each support the items 19, 20 and 21."""
    opened = server.open_round("oue", **{"items": CITIES, "epsilon": 3.0, **fields})
    report(server, opened, 4000)
    bits = np.zeros((400, len(CITIES)), np.uint8)
    bits[:, 19:22] = 1
    crafted = np.packbits(bits, axis=1, bitorder="little")
    assert server.submit(opened["id"], wire.pack(crafted)).status_code == 202
    return opened


def verdict(attack: str, share: float | None = None, **fields: Any) -> dict[str, Any]:
    """Return a stored verdict."""
    return {
        "attack": attack,
        "attack_probability": None,
        "malicious_share": share,
        "least_malicious_share": 0,
        "raised": [],
        **fields,
    }
