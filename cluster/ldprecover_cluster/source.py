"""Passes over the fragments of datasets: a map and a tree of sums, here or on a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from math import isqrt
from typing import Any, TypeVar

import distributed
from distributed import KilledWorker

from ldprecover.protocols import FrequencyOracle
from ldprecover.reports.source import Measure, MeasureOf, ReportSource, add_result, blocks
from ldprecover_cluster.dataset import ReportDataset, arrays, shown
from ldprecover_cluster.errors import EngineError, ReportDatasetError

T = TypeVar("T")
Client: Any = distributed.Client  # its functions declare no types

_TIMEOUT = 10.0
"""Seconds for the scheduler to answer."""


class DatasetSource(ReportSource):
    """The reports of datasets of the same parameters, measured fragment by fragment.

    With a client of a Dask cluster its workers read the fragments and add the results of about
    √N of N fragments; this process adds these sums. Without one this process adds the same
    numbers in the same order, so results are equal to the bit.
    """

    in_fragments = True

    def __init__(
        self,
        datasets: Sequence[ReportDataset],
        client: Any = None,
        *,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        super().__init__(datasets[0].export.parameters.oracle, lambda: (), progress=progress)
        fragments = [fragment for dataset in datasets for fragment in dataset.fragments]
        self._fragments = [(fragment, fragment.count_rows()) for fragment in fragments]
        self._client = client

    def results(self, measure_of: MeasureOf[T]) -> Iterator[tuple[int, T]]:
        """Yield numbers of reports and their measured results, in order."""
        first, calls = 0, []
        for fragment, n in self._fragments:
            if n:
                calls.append(
                    partial(_measure, measure_of(first, n), self.oracle, fragment, first, n)
                )
            first += n
        size = isqrt(len(calls)) or 1
        groups = [calls[start : start + size] for start in range(0, len(calls), size)]
        if self._client is None:
            for group in groups:
                yield _add(call() for call in group)
            return
        sums = [
            self._client.submit(
                _add_stored, [self._client.submit(call, pure=False) for call in group], pure=False
            )
            for group in groups
        ]
        for future in sums:
            yield future.result()


@contextmanager
def connect(url: str) -> Iterator[Any]:
    """Yield a client of the scheduler at a URL.

    Dask's configuration applies, also for TLS. Raises EngineError if the scheduler cannot be
    reached or is lost, if a worker lacks a package or has another version of LDPRecover, or if a
    task has killed several workers.
    """
    try:
        client = Client(url, timeout=_TIMEOUT, set_as_default=False)
    except (OSError, TypeError, ValueError, RuntimeError) as error:
        raise EngineError(shown(f"the scheduler {url} cannot be reached: {error}", url)) from None
    with client:
        try:
            _check_versions(client)
            yield client
        except KilledWorker as error:
            raise EngineError(f"workers were killed repeatedly, or lack memory: {error}") from error
        except CancelledError as error:
            raise EngineError(
                shown(f"the connection to the scheduler {url} was lost", url)
            ) from error
        except ImportError as error:
            raise EngineError(f"a worker lacks a package of this process: {error}") from error


def _check_versions(client: Any) -> None:
    """Raise EngineError if a worker has another version of LDPRecover, or none."""
    versions = client.get_versions(packages=["ldprecover"])
    own, *workers = (
        process["packages"].get("ldprecover")
        for process in (versions["client"], *versions["workers"].values())
    )
    for version in workers:
        if version != own:
            raise EngineError(f"a worker has LDPRecover {version}, and this process {own}")


def _measure(
    measure: Measure[Any], oracle: FrequencyOracle, fragment: Any, first: int, n: int
) -> tuple[int, Any]:
    """Return the number of reports of a fragment and the sum of their measured blocks."""
    results = (
        (len(block), measure(block)) for block in blocks(oracle, arrays(oracle, fragment), first)
    )
    read, total = _add(results)
    if read != n:
        raise ReportDatasetError(f"{fragment.path} has {read} reports instead of {n}")
    return read, total


def _add(results: Iterable[tuple[int, T]]) -> tuple[int, T]:
    """Return the sum of results, added in place to the first."""
    n, total = 0, None
    for rows, result in results:
        n, total = n + rows, add_result(total, result)
    assert total is not None  # fragments without reports are left out
    return n, total


def _add_stored(results: Sequence[tuple[int, T]]) -> tuple[int, T]:
    """Return the sum of results that Dask stores, and may need again if a worker is lost."""
    return _add([deepcopy(results[0]), *results[1:]])
