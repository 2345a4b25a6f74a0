"""Forked test processes behave as separate interpreters."""

import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.forked import PRELOADED, ForkedPython

PROGRAMS = {
    "prints": "import sys; print('out'); print('err', file=sys.stderr)",
    "exits": "raise SystemExit(3)",
    "fails": "import os; os.nothing",
    "is killed": f"import os; os.kill(os.getpid(), {int(signal.SIGKILL)})",
    "sees": "import os, sys; print(os.getcwd(), sys.argv, sys.stdin.read(), __name__, "
    "dict(os.environ).get('HERE'))",
    "warns": "import warnings; warnings.warn('so')",
    "prints without an end": "print('a', end='', flush=True); os = __import__('os'); print('b', "
    "end='')",
}


def test_preloaded_modules_are_imported() -> None:
    """The process that forks others ignores modules that it does not find."""
    assert [name for name in PRELOADED if find_spec(name) is None] == []


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_forked_process_equals_interpreter(forking: None, tmp_path: Path, program: str) -> None:
    arguments = ("-c", program, "one", "two")
    environment = os.environ | {"HERE": "here", "PYTHONWARNINGS": "error"}
    forked = ForkedPython(arguments, tmp_path, environment)
    out, err = forked.communicate()
    own = subprocess.run(
        [sys.executable, *arguments],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (forked.returncode, out) == (own.returncode, own.stdout)
    assert err.splitlines()[-1:] == own.stderr.splitlines()[-1:]
