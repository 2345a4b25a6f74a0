"""`merge`: exports of several rounds become one that `recompute` reads, or nothing is written."""

import errno
import json
import os
import resource
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Run

from ldprecover import RecoveryRequest, RoundExport, RoundParameters, Tally, recover
from ldprecover_cli.file import export_files

Write = Callable[..., str]


@pytest.fixture
def write() -> Write:
    """Write an export, and return the name of its file."""

    def write(file: str, id: str, counts: list[int], n: int, *, epsilon: float = 1.0) -> str:
        parameters = RoundParameters("oue", epsilon, ("a", "b", "c"))
        export = RoundExport(id, "letters", parameters, Tally(np.array(counts), n))
        Path(file).write_text(json.dumps(export.to_dict()), encoding="utf-8")
        return file

    return write


@pytest.fixture
def two(write: Write) -> str:
    """Two exports that add."""
    return f"{write('a.json', 'R1', [3, 0, 1], 5)} {write('b.json', 'R2', [0, 1, 0], 2)}"


def test_merged_file_has_the_numbers_of_one_server(run: Run, two: str, write: Write) -> None:
    """All steps and orders write the same bytes, also on standard output."""
    c = write("c.json", "R3", [4, 4, 4], 9)
    merged = run(f"file merge {two} {c} --output one.json").succeeds()
    assert "16 reports of 3 rounds are in" in merged.err
    run(f"file merge {c} a.json --output both.json").succeeds()
    run("file merge both.json b.json --output two.json").succeeds()
    assert Path("one.json").read_bytes() == Path("two.json").read_bytes()
    assert run(f"file merge {two} {c}").json == json.loads(Path("one.json").read_text())
    one, whole = (
        run(f"file recompute {file} --target a --eta 0.1").json | {"round": ""}
        for file in ("one.json", write("all.json", "R4", [7, 5, 5], 16))
    )
    assert one == whole


def test_merged_histograms_serve_methods_that_read_reports(run: Run) -> None:
    """The exports of two deployments are all that these methods need."""
    parameters = RoundParameters("llh", 1.0, tuple("abcdefghij"))
    oracle, rng = parameters.oracle, np.random.default_rng(1)
    reports = oracle.perturb(rng.integers(10, size=5_000), rng)
    for number, part in enumerate(np.split(reports, [2_000])):
        export = RoundExport(f"R{number}", "letters", parameters, Tally.of(oracle, part))
        Path(f"{number}.json").write_text(json.dumps(export.to_dict()), encoding="utf-8")
    run("file merge 0.json 1.json --output all.json").succeeds()
    for method in ("em", "fiad", "k-means", "detection"):
        request = RecoveryRequest(method, targets=[3])
        result = run(f"file recompute all.json --method {method} --target d").json
        assert result["recovered"] == recover(oracle, reports, request).recovered.tolist()


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            "a.json b.json c.json",
            (
                "a.json and c.json do not add: both have the round letters (R1), whose reports "
                "would count twice"
            ),
        ),
        ("a.json a.json", "a.json and a.json do not add: both have the round letters (R1)"),
        ("a.json other.json", "a.json and other.json do not add: their rounds differ in epsilon"),
        ("a.json", "merge needs two or more files"),
        ("a.json none.json", "cannot read none.json: No such file"),
        ("a.json /dev/zero", "cannot read /dev/zero: it must be a regular file or a pipe"),
        ("a.json large", "cannot read large: it is larger than 1 MiB, the limit for exports"),
    ],
)
def test_rejects_exports_that_do_not_add(
    run: Run, two: str, write: Write, files: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("c.json", "R1", [4, 4, 4], 9)
    write("other.json", "R5", [1, 1, 1], 3, epsilon=0.5)
    Path("large").write_bytes(bytes((1 << 20) + 1))
    monkeypatch.setattr(export_files, "_MAX_BYTES", 1 << 20)
    assert run(f"file merge {files} --output all.json").fails(2).startswith(message)
    assert not Path("all.json").exists()


@pytest.mark.parametrize("links", [True, False], ids=["", "without links"])
def test_overwrites_nothing_and_leaves_no_partial_file(
    run: Run, two: str, links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not links:

        def link(*paths: Path) -> None:
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))

        monkeypatch.setattr(os, "link", link)
    inputs = sorted(tmp_path.iterdir())
    assert "cannot write" in run(f"file merge {two} --output b.json").fails(2)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))  # stands for a full disk
    try:
        full = run(f"file merge {two} --output all.json")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "cannot write" in full.fails(2)
    assert sorted(tmp_path.iterdir()) == inputs
    run(f"file merge {two} --output all.json").succeeds()
    assert sorted(tmp_path.iterdir()) == sorted([*inputs, tmp_path / "all.json"])


def test_reads_a_pipe(run: Run, two: str) -> None:
    reading, writing = os.pipe()
    os.write(writing, Path("b.json").read_bytes())
    os.close(writing)
    assert run(f"file merge a.json /dev/fd/{reading}").json["n"] == 7
    os.close(reading)
