"""Calls of a Dask cluster's workers: pickled with the version, which workers check first."""

import pickle
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, reduce
from importlib.metadata import version
from socket import gethostname
from typing import Any

from ldprecover_cluster.errors import EngineError

_initialized: set[bytes] = set()
_lock = threading.Lock()


@dataclass(frozen=True)
class Task:
    """A pickled function without arguments, and an initializer for each worker process.

    Pickles name functions by module, as for local processes; no code travels. The fields are not
    in the `repr`: a worker logs a failed task, and its log must not contain reports.
    """

    version: str
    initializer: bytes = field(repr=False)
    call: bytes = field(repr=False)

    @classmethod
    def of(cls, call: Callable[..., Any], initializer: Callable[[], None] | None) -> "Task":
        """Return the task of a call."""
        return cls(_version(), _pickled(initializer), pickle.dumps(call))


def run(task: Task, *arguments: bytes) -> bytes:
    """Return the pickled result of a task; `arguments` are the results of others, as they are.

    It is pickled here so that a result that cannot be pickled is the task's error, not a failure
    of the connection. Raises EngineError in a worker of another version, of ldprecover or of a
    plugin, and ModuleNotFoundError if the worker lacks a package; both name its machine.
    """
    worker = f"the worker on {gethostname()}"
    if task.version != _version():
        raise EngineError(
            f"{worker} has ldprecover {_version()}, and this process has {task.version}: "
            "install the same version"
        )
    try:
        with _lock:
            if task.initializer not in _initialized:
                # Unpickling runs code: the scheduler admits only trusted clients.
                initializer = pickle.loads(task.initializer)  # noqa: S301
                if initializer is not None:
                    initializer()
                _initialized.add(task.initializer)
        try:
            call = pickle.loads(task.call)  # noqa: S301
        except AttributeError as error:
            raise EngineError(
                f"{worker} has another version of a package: {error}; install the same packages "
                "there as here"
            ) from error
        return pickle.dumps(call(*arguments))
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{worker} lacks", name=error.name) from error


def add_results(add: Callable[[Any, Any], Any], *results: bytes) -> Any:
    """Return the sum of pickled results in order, by a function that takes None as empty sum."""
    return reduce(add, map(pickle.loads, results), None)


@cache
def _version() -> str:
    return version("ldprecover")


@cache
def _pickled(initializer: Callable[[], None] | None) -> bytes:
    return pickle.dumps(initializer)
