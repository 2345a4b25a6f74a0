"""`merge`: exports of several rounds become one that `recompute` reads, or nothing is written."""

import errno
import json
import os
import resource
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ldprecover import RoundExport, RoundParameters, Tally
from ldprecover_cli import export_files
from ldprecover_cli.app import run

Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write an export, and return the path of its file."""

    def write(file: str, id: str, counts: list[int], n: int, *, epsilon: float = 1.0) -> str:
        parameters = RoundParameters("oue", epsilon, ("a", "b", "c"))
        export = RoundExport(id, "letters", parameters, Tally(np.array(counts), n))
        path = tmp_path / file
        path.write_text(json.dumps(export.to_dict()), encoding="utf-8")
        return str(path)

    return write


def test_a_merged_file_gives_the_numbers_of_one_server(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In steps or at once the same bytes come out, and without a file on standard output."""
    a, b, c = (
        write("a.json", "R1", [3, 0, 1], 5),
        write("b.json", "R2", [0, 1, 0], 2),
        write("c.json", "R3", [4, 4, 4], 9),
    )
    one, two, both = (str(tmp_path / name) for name in ("one.json", "two.json", "both.json"))
    assert run(["merge", a, b, c, "--output", one]) == 0
    assert "16 reports of 3 rounds are in" in capsys.readouterr().err
    assert run(["merge", c, a, "--output", both]) == 0
    assert run(["merge", both, b, "--output", two]) == 0
    assert Path(one).read_bytes() == Path(two).read_bytes()
    capsys.readouterr()
    assert run(["merge", a, b, c]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(Path(one).read_text(encoding="utf-8"))

    columns = []
    for file in (one, write("all.json", "R4", [7, 5, 5], 16)):
        assert run(["recompute", file, "--target", "a", "--eta", "0.1"]) == 0
        columns.append(json.loads(capsys.readouterr().out))
        del columns[-1]["round"]
    assert columns[0] == columns[1]


def test_what_does_not_add_is_refused_by_its_file_and_leaves_none(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b, c = (
        write("a.json", "R1", [3, 0, 1], 5),
        write("b.json", "R2", [0, 1, 0], 2),
        write("c.json", "R1", [4, 4, 4], 9),
    )
    other = write("other.json", "R5", [1, 1, 1], 3, epsilon=0.5)
    output = tmp_path / "all.json"
    refused = {
        (
            a,
            b,
            c,
        ): f"{a} and {c} do not add: both have the round letters (R1), whose reports would count "
        "twice",
        (a, a): f"{a} and {a} do not add: both have the round letters (R1)",
        (a, other): f"{a} and {other} do not add: their rounds differ in epsilon",
        (a,): "merge needs two or more files",
        (a, str(tmp_path / "none.json")): "cannot read",
    }
    before = sorted(tmp_path.iterdir())
    for files, reason in refused.items():
        assert run(["merge", *files, "--output", str(output)]) == 2
        assert reason in " ".join(capsys.readouterr().err.split())
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("links", [True, False], ids=["", "without links"])
def test_a_merge_overwrites_nothing_and_leaves_no_half_file(
    links: bool,
    write: Write,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not links:

        def link(*paths: Path) -> None:
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))

        monkeypatch.setattr(os, "link", link)
    a, b = write("a.json", "R1", [3, 0, 1], 5), write("b.json", "R2", [0, 1, 0], 2)
    inputs = sorted(tmp_path.iterdir())
    assert run(["merge", a, b, "--output", b]) == 2
    assert "cannot write" in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == inputs
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        assert run(["merge", a, b, "--output", str(tmp_path / "all.json")]) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "cannot write" in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == inputs
    assert run(["merge", a, b, "--output", str(tmp_path / "all.json")]) == 0
    assert sorted(tmp_path.iterdir()) == sorted([*inputs, tmp_path / "all.json"])


def test_a_pipe_is_read_and_what_has_no_end_is_refused(
    write: Write,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a, b = write("a.json", "R1", [3, 0, 1], 5), write("b.json", "R2", [0, 1, 0], 2)
    reading, writing = os.pipe()
    os.write(writing, Path(b).read_bytes())
    os.close(writing)
    assert run(["merge", a, f"/dev/fd/{reading}"]) == 0
    os.close(reading)
    assert json.loads(capsys.readouterr().out)["n"] == 7
    assert run(["merge", a, "/dev/zero"]) == 2
    assert "cannot read /dev/zero: it must be a regular file or a pipe" in capsys.readouterr().err
    monkeypatch.setattr(export_files, "_MAX_BYTES", 1 << 20)
    (tmp_path / "large").write_bytes(bytes((1 << 20) + 1))
    assert run(["merge", a, str(tmp_path / "large")]) == 2
    assert "large: it is larger than 1 MiB, the limit for exports" in capsys.readouterr().err
