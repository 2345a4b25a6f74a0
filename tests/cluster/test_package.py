"""What the package asks of an install: nothing of Dask and pyarrow before they are used, and a
sentence then.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from ldprecover import RoundExport, RoundParameters, Tally

WITHOUT = """
import sys
for name in ("dask", "distributed", "fsspec", "pyarrow"):
    sys.modules[name] = None
"""


def without_the_extra(code: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", WITHOUT + code], capture_output=True, text=True)


def test_without_the_extra_everything_else_works(tmp_path: Path) -> None:
    """An engine of processes too; and the server, which may be told of a scheduler, starts without
    Dask.
    """
    parameters = RoundParameters("grr", 1.0, ("a", "b"))
    export = RoundExport(
        "A", "a", parameters, Tally.of(parameters.oracle, np.array([0, 0, 1], "<u4"))
    )
    file = tmp_path / "a.json"
    file.write_text(json.dumps(export.to_dict()))
    code = f"""
import ldprecover_cluster, ldprecover_experiments.runs
import ldprecover_server.app, ldprecover_server.analysis.worker
from ldprecover_cli.app import run
if __name__ == "__main__":
    with ldprecover_cluster.engine(2) as executor:
        assert executor.submit(abs, -1).result() == 1
    assert run(["recompute", {str(file)!r}]) == 0
"""
    done = without_the_extra(code)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["n"] == 3


def test_without_the_extra_a_scheduler_is_refused_with_what_to_install(tmp_path: Path) -> None:
    code = """
from ldprecover_cluster import EngineError, Scheduler, engine
try:
    with engine(scheduler=Scheduler("tls://a:1")):
        pass
except EngineError as error:
    print(error)
"""
    done = without_the_extra(code)
    assert (
        done.stdout
        == "a scheduler needs Dask: install it with `pip install 'ldprecover[cluster]'`\n"
    ), done.stderr
