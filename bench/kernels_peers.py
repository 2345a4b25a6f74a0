"""Other LDP libraries in Python, each called as its own documentation does.

A peer counts what its own client sends, in its own form (lists of integers, of float vectors, of
pairs), so that no conversion is charged to it; its estimate from the counts is O(d) and stays in.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Work = Callable[[], object]


@dataclass(frozen=True)
class Peer:
    """One library: what it does for the items that its users hold."""

    name: str
    grr: Callable[[list[int]], Work]
    """items -> a count of their GRR reports"""
    oue: Callable[[list[int]], Work]
    olh: Callable[[list[int]], Work]
    simulate_oue: Callable[[list[int]], Work]
    """items -> perturbing them and packing the bits"""


def _pack(vectors: list[np.ndarray]) -> np.ndarray:
    return np.packbits(np.array(vectors, dtype=np.uint8), axis=1, bitorder="little")


def pure_ldp(d: int, epsilon: float) -> Peer:
    """pure-ldp (Maddock); its fast local hashing is another protocol and not compared."""
    from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
    from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer
    from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

    def index(item: int) -> int:
        return item

    grr_client = DEClient(epsilon, d, index_mapper=index)
    oue_client = UEClient(epsilon, d, use_oue=True, index_mapper=index)
    olh_client = LHClient(epsilon, d, use_olh=True, index_mapper=index)

    def counting(client, server) -> Callable[[list[int]], Work]:
        def prepare(items: list[int]) -> Work:
            reports = [client.privatise(item) for item in items]

            def count() -> None:
                aggregator = server()
                for report in reports:
                    aggregator.aggregate(report)

            return count

        return prepare

    return Peer(
        "pure-ldp",
        grr=counting(grr_client, lambda: DEServer(epsilon, d)),
        oue=counting(oue_client, lambda: UEServer(epsilon, d, use_oue=True)),
        olh=counting(olh_client, lambda: LHServer(epsilon, d, use_olh=True)),
        simulate_oue=lambda items: lambda: _pack([oue_client.privatise(item) for item in items]),
    )


def multi_freq_ldpy(d: int, epsilon: float) -> Peer:
    """multi-freq-ldpy (Arcolezi et al.); its clients of GRR and OUE are compiled by numba."""
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
    from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client

    def grr(items: list[int]) -> Work:
        reports = [GRR_Client(item, d, epsilon) for item in items]
        return lambda: GRR_Aggregator_MI(reports, d, epsilon)

    def oue(items: list[int]) -> Work:
        reports = [UE_Client(item, d, epsilon) for item in items]
        return lambda: UE_Aggregator_MI(reports, epsilon)

    def olh(items: list[int]) -> Work:
        reports = [LH_Client(item, d, epsilon) for item in items]
        return lambda: LH_Aggregator_MI(reports, d, epsilon)

    return Peer(
        "multi-freq-ldpy",
        grr,
        oue,
        olh,
        simulate_oue=lambda items: lambda: _pack([UE_Client(item, d, epsilon) for item in items]),
    )


def ldp_toolbox(d: int, epsilon: float) -> Peer:
    """ldp-toolbox (Zhang et al.); its OLH spreads over processes and is held to one, as all
    here.
    """
    from joblib import parallel_config  # one of its dependencies
    from ldp_toolbox.protocols.frequency.grr import GeneralizedRandomizedResponse
    from ldp_toolbox.protocols.frequency.lh import LocalHashing
    from ldp_toolbox.protocols.frequency.ue import UnaryEncoding

    grr, oue, olh = (
        GeneralizedRandomizedResponse(d, epsilon),
        UnaryEncoding(d, epsilon),
        LocalHashing(d, epsilon),
    )

    def counting(protocol) -> Callable[[list[int]], Work]:
        def prepare(items: list[int]) -> Work:
            reports = [protocol.obfuscate(item) for item in items]

            def count() -> None:
                with parallel_config(backend="sequential"):
                    protocol.estimate(reports)

            return count

        return prepare

    return Peer(
        "ldp-toolbox",
        counting(grr),
        counting(oue),
        counting(olh),
        simulate_oue=lambda items: lambda: _pack([oue.obfuscate(item) for item in items]),
    )


def _quiet(load: Callable[[int, float], Peer]) -> Callable[[int, float], Peer]:
    def loaded(d: int, epsilon: float) -> Peer:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return load(d, epsilon)

    return loaded


LOADERS = {
    "pure-ldp": _quiet(pure_ldp),
    "multi-freq-ldpy": _quiet(multi_freq_ldpy),
    "ldp-toolbox": _quiet(ldp_toolbox),
}
