"""`file recompute --reports` has the server's numbers with every engine."""

import fcntl
import json
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Run
from tests.conftest import ServerProcess
from tests.forked import Process, start_python

from ldprecover import RoundExport, RoundParameters, Tally
from ldprecover.recovery import ReportSource
from ldprecover.types import Reports
from ldprecover_attacker import MGA
from ldprecover_cluster import ReportDataset, write_dataset

pytest.importorskip("pyarrow", reason="the extra `cluster` is not installed: no dataset is written")
dask = pytest.mark.skipif(
    "not __import__('importlib').util.find_spec('distributed')", reason="Dask is not installed"
)

D = 20
TARGETS = (3, 7, 11, 15, 17, 19)
OUE = RoundParameters("oue", 1.0, tuple(map(str, range(D))))
HOURS = {480_000: 1_500, 480_001: 1_900}


def poisoned(seed: int = 3) -> Reports:
    """Return 3,000 honest and 400 crafted reports, shuffled."""
    oracle, rng = OUE.oracle, np.random.default_rng(seed)
    crafted = MGA(TARGETS).reports(oracle, 400, rng)
    rows = np.concatenate([oracle.perturb(rng.integers(0, D, 3_000), rng), crafted])
    rng.shuffle(rows)
    return rows


def exported(rows: Reports, id: str = "A", parameters: RoundParameters = OUE) -> RoundExport:
    return RoundExport(id, "letters", parameters, Tally.of(parameters.oracle, rows))


def written(folder: Path | str, export: RoundExport, rows: Reports) -> ReportDataset:
    """Write reports as a dataset of two hours, the second with fewer if rows are missing."""
    pieces = dict(zip(HOURS, np.split(rows, [1_500]), strict=True))
    hours = {hour: len(piece) for hour, piece in pieces.items()}
    return write_dataset(
        folder, export, hours, ((hour, piece.tobytes()) for hour, piece in pieces.items())
    )


def write_export(export: RoundExport, file: str = "round.json") -> str:
    Path(file).write_text(json.dumps(export.to_dict()), encoding="utf-8")
    return file


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def data() -> ReportDataset:
    """The dataset of a round, in the folder `data`."""
    rows = poisoned()
    return written("data", exported(rows), rows)


@dask
def test_each_engine_prints_the_same(
    run: Run, data: ReportDataset, request: pytest.FixtureRequest
) -> None:
    line = "file recompute data/_round.json --reports data --method fiad"
    local = run(line).json
    assert local["n"] == 3_400
    assert any("abnormal" in note for note in local["notes"])
    assert run(f"{line} --jobs 2").json == local
    options = request.getfixturevalue("dask_cluster").options
    run(f"{line} {options} --output result.json").succeeds()
    assert json.loads(Path("result.json").read_text(encoding="utf-8")) == local


@dask
@pytest.mark.parametrize("protocol", ["oue", "olh", "hr"])
def test_each_engine_prints_the_same_certificate(
    run: Run, request: pytest.FixtureRequest, protocol: str
) -> None:
    parameters, rng = RoundParameters(protocol, 1.0, OUE.items), np.random.default_rng(3)
    oracle = parameters.oracle
    malicious = MGA(TARGETS).reports(oracle, 400, rng)
    rows = np.concatenate([oracle.perturb(rng.integers(0, D, 3_000), rng), malicious])
    export = replace(exported(rows, parameters=parameters), seed="0123456789abcdef" * 2)
    written("data", export, rows)
    line = (
        "file recompute data/_round.json --reports data --malicious-share 0.5 --items 3,7 "
        "--method norm-sub"
    )
    certificate = run(line).json["certificate"]
    assert certificate["seed"] == export.seed
    assert run(f"{line} --jobs 2").json["certificate"] == certificate
    options = request.getfixturevalue("dask_cluster").options
    assert run(f"{line} {options}").json["certificate"] == certificate
    written("other", export, rows[::-1])
    other = line.replace("data", "other")
    assert run(other).json["certificate"] == certificate


def test_certificate_of_some_reports_is_from_the_counts(run: Run) -> None:
    rows = poisoned()
    export = replace(exported(rows), seed="0123456789abcdef" * 2)
    written("data", export, rows[:3_000])
    line = "file recompute data/_round.json --reports data --malicious-share 0.5 --partial"
    line += " --method norm-sub"
    result = run(line).json
    certificate = result["certificate"]
    assert (certificate["n"], certificate["from_reports"]) == (3_400, False)
    assert certificate["assumption"].endswith(" Only the counts of the reports were read.")
    assert (
        "The certificate is from the counts of all reports: one from reports needs all of them, "
        "and the dataset lacks some." in result["notes"]
    )


def test_certificate_of_an_open_round_is_from_the_counts(run: Run, data: ReportDataset) -> None:
    line = "file recompute data/_round.json --malicious-share 0.5 --method norm-sub"
    note = (
        "The certificate is from the counts of all reports: one from reports needs the seed of a "
        "closed round, and the export has none."
    )
    result = run(f"{line} --reports data").json
    assert note in result["notes"]
    counted = run(line).json
    assert note not in counted["notes"]  # no reports were asked for
    assert result["certificate"] == counted["certificate"]


def test_a_dataset_gives_the_servers_numbers(run: Run, server: ServerProcess) -> None:
    """For methods whose result does not depend on the order of reports."""
    rows = poisoned(seed=9)
    round = server.open_round("oue", domain_size=D, epsilon=1.0)["id"]
    assert server.submit(round, rows.tobytes(), key=server.admin_key).status_code == 202
    export = server.http.get(f"/rounds/{round}/export", headers=server.admin).content
    written("data", RoundExport.from_json(export), rows)
    for method, targets in (
        ("detection", TARGETS),
        ("conditional-probability", TARGETS[:1]),
        ("diffstats", ()),
    ):
        fields = {"method": method, "targets": [str(target) for target in targets]}
        response = server.http.post(
            f"/rounds/{round}/recover", json=fields, headers=server.admin
        ).json()
        options = " ".join(f"--target {target}" for target in targets)
        result = run(
            f"file recompute data/_round.json --reports data --method {method} {options}"
        ).json
        for column in ("malicious", "genuine", "recovered", "eta", "notes", "targets"):
            assert result[column] == response[column]


def test_a_merged_export_takes_the_datasets_of_all_rounds(run: Run, data: ReportDataset) -> None:
    other = poisoned(seed=4)
    written("other", exported(other, "B"), other)
    run("file merge data/_round.json other/_round.json --output both.json").succeeds()
    line = "file recompute both.json --method diffstats --reports"
    result = run(f"{line} other --reports data").json
    rows = np.concatenate([poisoned(), other])
    whole = exported(rows).recover("diffstats", reports=ReportSource(OUE.oracle, rows))
    assert result["n"] == 6_800
    assert result["recovered"] == whole.recovered.tolist()
    for folder in ("data", "other"):
        error = run(f"{line} {folder}").fails(2)
        assert "and the export is of the rounds letters (A) and letters (B)" in error
    error = run(f"{line} data --reports data").fails(2)
    assert "whose reports would count twice" in error


def test_rejects_a_dataset_of_another_round_or_time(run: Run, data: ReportDataset) -> None:
    rows = poisoned(seed=4)
    for message, export in {
        "the datasets and the export have different parameters": exported(
            rows, parameters=RoundParameters("oue", 1.5, OUE.items)
        ),
        "the datasets are of the round letters (A), and the export is of the round letters (B)": (
            exported(rows, "B")
        ),
        "they were written at different times": exported(rows),
    }.items():
        file = write_export(export)
        assert message in run(f"file recompute {file} --reports data").fails(2)


def test_partial_accepts_a_dataset_that_lacks_reports(run: Run) -> None:
    rows = poisoned()
    written("data", exported(rows), rows[:3_000])
    line = "file recompute data/_round.json --reports data --method diffstats"
    missing = "the dataset lacks 400 of the round's 3,400 reports"
    assert f"{missing}; --partial" in run(line).fails(2)
    result = run(f"{line} --partial").json
    assert result["n"] == 3_000
    assert result["counts"] == Tally.of(OUE.oracle, rows[:3_000]).counts(OUE.oracle).tolist()
    assert result["notes"][-1] == f"{missing.capitalize()}: all numbers are of the others."


def test_names_a_changed_part(run: Run, data: ReportDataset) -> None:
    (file,) = Path("data", "hour=480001").iterdir()
    content = bytearray(file.read_bytes())
    content[100] ^= 1
    file.write_bytes(content)
    error = run("file recompute data/_round.json --reports data --method diffstats").fails(1)
    assert error.startswith(f"the part hour=480001/{file.name} of ")


@pytest.mark.parametrize("missing", [0, 1])
def test_rejects_reports_that_differ_from_the_counts(
    run: Run, tmp_path: Path, missing: int
) -> None:
    """Anyone can compute a valid checksum."""
    rows = poisoned()
    export = written("data", exported(rows), rows[: len(rows) - missing]).export
    wrong = Tally(export.tally.summary[::-1].copy(), len(rows))
    write_export(replace(export, tally=wrong), "data/_round.json")
    error = run("file recompute data/_round.json --reports data --partial").fails(1)
    url = f"file://{tmp_path}/data"
    assert error == f"the reports of {url} differ from the counts in its _round.json"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            "--jobs 2",
            "--jobs and --scheduler need a round's reports: name its dataset with --reports",
        ),
        ("--partial", "name its dataset with --reports"),
        ("--tls-ca ca.pem", "--tls-ca, --tls-cert and --tls-key need --scheduler"),
        (
            "--reports X --scheduler tcp://10.0.0.1:8786",
            "the scheduler must be tls://HOST:PORT for another",
        ),
        ("--reports X --jobs 2 --scheduler tls://a:1", "or --scheduler"),
        ("--option alpha", "--option takes a name and a value"),
        (
            "--output round.json",
            "cannot write round.json: it exists; delete it, or name another file",
        ),
    ],
)
def test_rejects_options_that_exclude_each_other(run: Run, options: str, message: str) -> None:
    file = write_export(exported(poisoned()))
    content = Path(file).read_text()
    assert message in run(f"file recompute {file} {options}").fails(2)
    assert Path(file).read_text() == content


@pytest.fixture
def waiting(forking: None, data: ReportDataset) -> Callable[[str], tuple[Process, int]]:
    """Start a command that waits to read a part of the dataset; closing the descriptor lets it.

    This process has a lease on that part, so other processes wait when they open it.
    """

    def start(options: str) -> tuple[Process, int]:
        part = os.open(next(Path("data", "hour=480001").iterdir()), os.O_RDWR)
        notified, notify = os.pipe()
        before = signal.signal(signal.SIGIO, lambda *_: os.write(notify, b"!"))
        fcntl.fcntl(part, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        line = f"file recompute data/_round.json --reports data --method diffstats {options}"
        process = start_python(
            *("-m", "ldprecover_cli", *line.split(), "--output", "result.json"),
            folder=Path.cwd(),
            environment=os.environ,
            start_new_session=True,
        )
        os.read(notified, 1)
        signal.signal(signal.SIGIO, before)
        os.close(notified)
        os.close(notify)
        return process, part

    return start


@pytest.mark.skipif(not hasattr(fcntl, "F_SETLEASE"), reason="only Linux has leases")
@pytest.mark.parametrize("on_cluster", [False, pytest.param(True, marks=dask)])
def test_ctrl_c_leaves_no_file(
    waiting: Callable[[str], tuple[Process, int]], on_cluster: bool, request: pytest.FixtureRequest
) -> None:
    """The command waits for its processes, not for workers of a cluster."""
    options = "--jobs 2"
    if on_cluster:
        options = request.getfixturevalue("dask_cluster").options
    process, part = waiting(options)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal sends it to all processes
    if not on_cluster:
        os.close(part)
    _, err = process.communicate()
    if on_cluster:
        os.close(part)
    assert process.wait() == 130
    assert "Interrupted." in err
    assert not Path("result.json").exists()
