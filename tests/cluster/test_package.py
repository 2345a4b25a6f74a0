"""The package needs Dask and pyarrow only when they are used, and then names the extra."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from ldprecover import RoundExport, RoundParameters, Tally


def test_only_datasets_and_schedulers_need_the_extra(tmp_path: Path) -> None:
    """Without it the server and an engine of processes work; a scheduler names the extra."""
    parameters = RoundParameters("grr", 1.0, ("a", "b"))
    tally = Tally.of(parameters.oracle, np.array([0, 0, 1], "<u4"))
    file = tmp_path / "a.json"
    file.write_text(json.dumps(RoundExport("A", "a", parameters, tally).to_dict()))
    code = f"""
import sys
for name in ("dask", "distributed", "fsspec", "pyarrow"):
    sys.modules[name] = None
import ldprecover_experiments.runs, ldprecover_server.app, ldprecover_server.analysis.worker
from ldprecover_cli.app import run
from ldprecover_cluster import EngineError, Scheduler, engine
if __name__ == "__main__":
    with engine(2) as executor:
        assert executor.submit(abs, -1).result() == 1
    assert run(["file", "recompute", {str(file)!r}]) == 0
    try:
        with engine(scheduler=Scheduler("tls://a:1")):
            pass
    except EngineError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    recomputed, error = done.stdout.splitlines()
    assert json.loads(recomputed)["n"] == 3
    assert error == "a scheduler needs Dask: install it with `pip install 'ldprecover[cluster]'`"
