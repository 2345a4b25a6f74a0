"""A call on its way to a worker: pickled here, and read there once the worker is known to be of the
same version.
"""

import pickle
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from typing import Any

from ldprecover_cluster.errors import EngineError

_begun: set[bytes] = set()
_beginning = threading.Lock()


@dataclass(frozen=True)
class Task:
    """A function of no arguments, pickled, and another that is called once in each worker process
    before the first.

    What is pickled is named by its module, as for processes of this machine; no code travels. A
    worker writes a task that fails to its log, where nothing of its reports may stand.
    """

    version: str
    begin: bytes = field(repr=False)
    call: bytes = field(repr=False)

    @classmethod
    def of(cls, call: Callable[[], Any], begin: Callable[[], None] | None) -> "Task":
        """Return the task of a call."""
        return cls(_version(), _pickled(begin), pickle.dumps(call))


def run(task: Task) -> bytes:
    """Return what the call returns, pickled here: what cannot be is this task's error, and no
    trouble on the way.

    Raises EngineError in a worker of another version.
    """
    if task.version != _version():
        raise EngineError(
            f"the workers have ldprecover {_version()}, and this is {task.version}: install the "
            "same"
        )
    with _beginning:
        if task.begin not in _begun:
            # whoever reaches a worker can run code there
            begin = pickle.loads(task.begin)  # noqa: S301
            if begin is not None:
                begin()
            _begun.add(task.begin)
    return pickle.dumps(pickle.loads(task.call)())  # noqa: S301


@cache
def _version() -> str:
    return version("ldprecover")


@cache
def _pickled(begin: Callable[[], None] | None) -> bytes:
    return pickle.dumps(begin)
