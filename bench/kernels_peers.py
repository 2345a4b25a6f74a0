"""Other LDP libraries in Python, each called as its own documentation does.

A peer counts what its own client sends, in its own form (lists of integers, of float vectors, of
pairs), so that no conversion is charged to it; its estimate from the counts is O(d) and stays in.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from bench.harness import Work


@dataclass(frozen=True)
class Peer:
    """One library: its clients and its estimates, for the protocols grr, oue and olh."""

    name: str
    clients: Mapping[str, Callable[[int], Any]]
    """Each returns the report of a user with this item."""
    estimates: Mapping[str, Callable[[list[Any]], object]]
    """Each counts reports."""

    def counting(self, protocol: str, items: list[int]) -> Work:
        """Return a count of reports, which are made now."""
        client = self.clients[protocol]
        return partial(self.estimates[protocol], [client(item) for item in items])

    def simulating(self, items: list[int]) -> Work:
        """Return work that perturbs items by OUE and packs the bits."""
        client = self.clients["oue"]

        def pack() -> object:
            bits = np.array([client(item) for item in items], dtype=np.uint8)
            return np.packbits(bits, axis=1, bitorder="little")

        return pack


def pure_ldp(d: int, epsilon: float) -> Peer:
    """pure-ldp (Maddock); its fast local hashing is another protocol and not compared."""
    from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
    from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer
    from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

    def estimate(server: Callable[..., Any], options: dict[str, bool], reports: list[Any]) -> None:
        aggregator = server(epsilon, d, **options)
        for report in reports:
            aggregator.aggregate(report)

    kinds: dict[str, tuple[Any, Any, dict[str, bool]]] = {
        "grr": (DEClient, DEServer, {}),
        "oue": (UEClient, UEServer, {"use_oue": True}),
        "olh": (LHClient, LHServer, {"use_olh": True}),
    }
    return Peer(
        "pure-ldp",
        {
            name: client(epsilon, d, **options, index_mapper=int).privatise
            for name, (client, _, options) in kinds.items()
        },
        {name: partial(estimate, server, options) for name, (_, server, options) in kinds.items()},
    )


def multi_freq_ldpy(d: int, epsilon: float) -> Peer:
    """multi-freq-ldpy (Arcolezi et al.); its clients of GRR and OUE are compiled by numba."""
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
    from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client

    return Peer(
        "multi-freq-ldpy",
        {
            "grr": lambda item: GRR_Client(item, d, epsilon),
            "oue": lambda item: UE_Client(item, d, epsilon),
            "olh": lambda item: LH_Client(item, d, epsilon),
        },
        {
            "grr": lambda reports: GRR_Aggregator_MI(reports, d, epsilon),
            "oue": lambda reports: UE_Aggregator_MI(reports, epsilon),
            "olh": lambda reports: LH_Aggregator_MI(reports, d, epsilon),
        },
    )


def ldp_toolbox(d: int, epsilon: float) -> Peer:
    """ldp-toolbox (Zhang et al.); its OLH spreads over processes and is held to one, as all
    here.
    """
    from joblib import parallel_config  # one of its dependencies
    from ldp_toolbox.protocols.frequency.grr import GeneralizedRandomizedResponse
    from ldp_toolbox.protocols.frequency.lh import LocalHashing
    from ldp_toolbox.protocols.frequency.ue import UnaryEncoding

    def estimate(protocol: Any, reports: list[Any]) -> None:
        with parallel_config(backend="sequential"):
            protocol.estimate(reports)

    protocols = {
        "grr": GeneralizedRandomizedResponse(d, epsilon),
        "oue": UnaryEncoding(d, epsilon),
        "olh": LocalHashing(d, epsilon),
    }
    return Peer(
        "ldp-toolbox",
        {name: protocol.obfuscate for name, protocol in protocols.items()},
        {name: partial(estimate, protocol) for name, protocol in protocols.items()},
    )


LOADERS = {"pure-ldp": pure_ldp, "multi-freq-ldpy": multi_freq_ldpy, "ldp-toolbox": ldp_toolbox}
