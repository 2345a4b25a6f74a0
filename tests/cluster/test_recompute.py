"""`recompute --reports`: the server's numbers from a dataset, by every engine; one that does not
fit is refused.
"""

import fcntl
import json
import os
import signal
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import ServerProcess
from tests.dask_cluster import DaskCluster

from ldprecover import RoundExport, RoundParameters, Tally
from ldprecover.types import Reports
from ldprecover_attacker import MGA
from ldprecover_cli.app import run
from ldprecover_cluster import ReportDataset, write_dataset

pytest.importorskip("pyarrow", reason="the extra `cluster` is not installed: no dataset is written")
dask = pytest.mark.skipif(
    "not __import__('importlib').util.find_spec('distributed')", reason="Dask is not installed"
)

leases = pytest.mark.skipif(not hasattr(fcntl, "F_SETLEASE"), reason="only Linux has leases")

D = 20
TARGETS = ("3", "7", "11", "15", "17", "19")
HOURS = {480_000: 1_500, 480_001: 1_900}


def poisoned(parameters: RoundParameters, seed: int = 3) -> Reports:
    oracle, rng = parameters.oracle, np.random.default_rng(seed)
    crafted = MGA(tuple(map(int, TARGETS))).reports(oracle, 400, rng)
    rows = np.concatenate([oracle.perturb(rng.integers(0, D, 3_000), rng), crafted])
    rng.shuffle(rows)
    return rows


def written(folder: Path, export: RoundExport, rows: Reports) -> ReportDataset:
    """Write reports as a dataset of one part for each hour; the last has fewer where there are
    fewer.
    """
    hours, pieces, first = {}, [], 0
    for hour, n in HOURS.items():
        piece = rows[first : first + n]
        hours[hour], first = len(piece), first + n
        pieces.append((hour, piece.tobytes()))
    return write_dataset(folder, export, hours, pieces)


def exported(parameters: RoundParameters, rows: Reports, id: str = "A") -> RoundExport:
    return RoundExport(id, "letters", parameters, Tally.of(parameters.oracle, rows))


@pytest.fixture(scope="module")
def oue() -> RoundParameters:
    return RoundParameters("oue", 1.0, tuple(map(str, range(D))))


@pytest.fixture(scope="module")
def folder(oue: RoundParameters, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of one round."""
    folder = tmp_path_factory.mktemp("dataset") / "letters"
    rows = poisoned(oue)
    assert len(written(folder, exported(oue, rows), rows).parts) == 2
    return folder


def recomputed(capfd: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    capfd.readouterr()
    code = run(["recompute", *arguments])
    out, err = capfd.readouterr()
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


def refused(capfd: pytest.CaptureFixture[str], code: int, *arguments: str) -> str:
    capfd.readouterr()
    assert run(["recompute", *arguments]) == code
    out, err = capfd.readouterr()
    assert out == ""
    return err


@dask
def test_each_engine_prints_the_same(
    folder: Path, dask_cluster: DaskCluster, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = [str(folder / "round.json"), "--reports", str(folder), "--method", "fiad"]
    here = recomputed(capfd, *arguments)
    assert here["n"] == 3_400
    assert any("abnormal" in note for note in here["notes"])
    assert recomputed(capfd, *arguments, "--jobs", "2") == here
    file = tmp_path / "answer.json"
    assert (
        run(["recompute", *arguments, "--scheduler", dask_cluster.url, "--output", str(file)]) == 0
    )
    assert json.loads(file.read_text(encoding="utf-8")) == here


def test_a_dataset_gives_the_servers_numbers(
    server: ServerProcess, oue: RoundParameters, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Of methods whose result does not hang on the order of reports."""
    rows = poisoned(oue, seed=9)
    round = server.open_round("oue", domain_size=D, epsilon=1.0)["id"]
    assert server.submit(round, rows.tobytes(), key=server.admin_key).status_code == 202
    export = RoundExport.from_json(
        server.http.get(f"/rounds/{round}/export", headers=server.admin).content
    )
    written(tmp_path / "data", export, rows)
    for method, targets in (
        ("detection-any", TARGETS),
        ("conditional-probability", TARGETS[:1]),
        ("diffstats", ()),
    ):
        asked = {"method": method, "targets": list(targets)}
        answer = server.http.post(
            f"/rounds/{round}/recover", json=asked, headers=server.admin
        ).json()
        known = [word for label in targets for word in ("--target", label)]
        folder = str(tmp_path / "data")
        found = recomputed(
            capfd, f"{folder}/round.json", "--reports", folder, "--method", method, *known
        )
        for column in ("malicious", "genuine", "recovered", "eta", "notes", "targets"):
            assert found[column] == answer[column]


def test_a_merged_export_takes_the_datasets_of_all_its_rounds(
    oue: RoundParameters, folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = [poisoned(oue), poisoned(oue, seed=4)]
    other, both = tmp_path / "other", tmp_path / "both.json"
    written(other, exported(oue, rows[1], "B"), rows[1])
    assert (
        run(["merge", str(folder / "round.json"), str(other / "round.json"), "--output", str(both)])
        == 0
    )
    found = recomputed(
        capfd, str(both), "--reports", str(other), "--reports", str(folder), "--method", "diffstats"
    )
    one = exported(oue, np.concatenate(rows))
    whole = one.recover(
        "diffstats", reports=None if one is None else _source(one, np.concatenate(rows))
    )
    assert found["n"] == 6_800
    assert found["recovered"] == whole.recovered.tolist()
    for folders in ([folder], [other]):
        given = [word for each in folders for word in ("--reports", str(each))]
        assert "and the export is of the rounds letters (A) and letters (B)" in refused(
            capfd, 2, str(both), *given
        )
    twice = ["--reports", str(folder), "--reports", str(folder)]
    assert "whose reports would count twice" in refused(capfd, 2, str(both), *twice)


def _source(export: RoundExport, rows: Reports) -> Any:
    from ldprecover.recovery import ReportSource

    return ReportSource(export.parameters.oracle, rows)


def test_a_dataset_of_another_round_or_moment_is_refused(
    oue: RoundParameters, folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = poisoned(oue, seed=4)
    others = {
        "the datasets and the export have different parameters": exported(
            RoundParameters("oue", 1.5, oue.items), rows
        ),
        r"the datasets are of the round letters (A), and the export "
        "is of the round letters (B)": exported(oue, rows, "B"),
        "they were written at different times": exported(oue, rows),
    }
    for said, export in others.items():
        (file := tmp_path / "round.json").write_text(json.dumps(export.to_dict()), encoding="utf-8")
        assert said in refused(capfd, 2, str(file), "--reports", str(folder))


def test_a_dataset_that_lacks_reports_is_refused_or_said_to(
    oue: RoundParameters, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = poisoned(oue)
    written(tmp_path / "data", exported(oue, rows), rows[:3_000])
    arguments = [
        str(tmp_path / "data/round.json"),
        "--reports",
        str(tmp_path / "data"),
        "--method",
        "diffstats",
    ]
    assert "the dataset lacks 400 of the round's 3,400 reports; --partial" in refused(
        capfd, 2, *arguments
    )
    found = recomputed(capfd, *arguments, "--partial")
    assert found["n"] == 3_000
    assert found["counts"] == Tally.of(oue.oracle, rows[:3_000]).counts(oue.oracle).tolist()
    lacking = "The dataset lacks 400 of the round's 3,400 reports: all numbers are of the others."
    assert found["notes"][-1] == lacking


def test_a_part_that_was_changed_ends_it_by_name(
    oue: RoundParameters, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = poisoned(oue)
    part = written(tmp_path / "data", exported(oue, rows), rows).parts[1]
    (file,) = (tmp_path / "data" / "hour=480001").iterdir()
    data = bytearray(file.read_bytes())
    data[100] ^= 1
    file.write_bytes(data)
    arguments = [
        str(tmp_path / "data/round.json"),
        "--reports",
        str(tmp_path / "data"),
        "--method",
        "diffstats",
    ]
    assert refused(capfd, 1, *arguments).startswith(f"error: the part hour=480001/{part.name} of ")


def test_reports_that_do_not_give_the_counts_are_refused(
    oue: RoundParameters, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Anybody can make a checksum."""
    rows, folder = poisoned(oue), tmp_path / "data"
    dataset = written(folder, exported(oue, rows), rows)
    for there in (len(rows), len(rows) - 1):  # whole, and with a report missing
        summary = dataset.export.tally.summary.copy()
        summary[:] = summary[::-1].copy()
        lying = replace(dataset.export, tally=Tally(summary, len(rows)))
        if there < len(rows):
            kept = rows[:there]
            folder = tmp_path / "partial"
            parts = written(folder, exported(oue, rows), kept).export.reports
            lying = replace(lying, reports=parts)
        (folder / "round.json").write_text(json.dumps(lying.to_dict()), encoding="utf-8")
        told = [
            str(folder / "round.json"),
            "--reports",
            str(folder),
            "--method",
            "ldprecover",
            "--partial",
        ]
        said = f"error: the reports of file://{folder} differ from the counts in its round.json"
        assert refused(capfd, 1, *told).strip() == said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--jobs", "2"],
            "--jobs and --scheduler need a round's reports: name its dataset with --reports",
        ),
        (["--partial"], "name its dataset with --reports"),
        (["--tls-ca", "ca.pem"], "--tls-ca, --tls-cert and --tls-key need --scheduler"),
        (
            ["--reports", "X", "--scheduler", "tcp://10.0.0.1:8786"],
            "--scheduler must be tls://HOST:PORT for another",
        ),
        (["--reports", "X", "--jobs", "2", "--scheduler", "tls://a:1"], "or --scheduler"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    folder: Path, arguments: list[str], said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert said in refused(capfd, 2, str(folder / "round.json"), *arguments)


def test_what_is_there_is_not_written_over(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "there").write_text("mine")
    assert "the file exists" in refused(
        capfd, 2, str(folder / "round.json"), "--output", str(tmp_path / "there")
    )
    assert (tmp_path / "there").read_text() == "mine"


def unfinished(folder: Path, output: Path, *arguments: str) -> "tuple[subprocess.Popen[str], int]":
    """Return a command that works on a dataset, once one of its parts is being read, and what to
    close to let it.

    This process has a lease on that part meanwhile: whoever opens it waits.
    """
    part = os.open(next((folder / "hour=480001").iterdir()), os.O_RDWR)
    opened, tell = os.pipe()
    before = signal.signal(signal.SIGIO, lambda *_: os.write(tell, b"!"))
    fcntl.fcntl(part, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    told = [
        str(folder / "round.json"),
        "--reports",
        str(folder),
        "--method",
        "diffstats",
        "--output",
        str(output),
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "ldprecover_cli", "recompute", *told, *arguments],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    os.read(opened, 1)
    signal.signal(signal.SIGIO, before)
    os.close(opened)
    os.close(tell)
    return process, part


@pytest.fixture
def copied(oue: RoundParameters, tmp_path: Path) -> Path:
    rows = poisoned(oue)
    written(tmp_path / "data", exported(oue, rows), rows)
    return tmp_path / "data"


@leases
@pytest.mark.parametrize("where", ["processes", pytest.param("cluster", marks=dask)])
def test_ctrl_c_ends_it_and_leaves_no_file(
    where: str, copied: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    more = ["--jobs", "2"]
    if where == "cluster":
        more = ["--scheduler", request.getfixturevalue("dask_cluster").url]
    process, pipe = unfinished(copied, tmp_path / "answer.json", *more)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal sends it: to all
    if where == "cluster":
        said = process.communicate()[1]  # it waits for no worker
        os.close(pipe)
    else:
        os.close(pipe)
        said = process.communicate()[1]
    assert process.returncode == 130
    assert "Interrupted." in said
    assert not (tmp_path / "answer.json").exists()


@dask
@leases
def test_a_scheduler_that_is_killed_ends_it_with_a_sentence_and_leaves_no_file(
    copied: Path, tmp_path: Path
) -> None:
    with closing(DaskCluster(tmp_path)) as cluster:
        cluster.start_worker()
        process, pipe = unfinished(copied, tmp_path / "answer.json", "--scheduler", cluster.url)
        os.kill(cluster.scheduler.pid, signal.SIGKILL)
        said = process.communicate()[1]
        os.close(pipe)
    assert process.returncode == 1
    assert said.splitlines()[-1].startswith(
        f"error: the connection to the scheduler {cluster.url} was lost"
    )
    assert not (tmp_path / "answer.json").exists()
