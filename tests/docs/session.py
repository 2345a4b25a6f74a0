"""A reader who tries everything a page shows, from top to bottom, and compares what comes out."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.conftest import ServerProcess
from tests.docs.markdown import PAGES, ROOT, Block, Page
from tests.forked import start_python

_ELSEWHERE = "http://127.0.0.1:8000"  # where a reader's server listens
_PRELUDE = """
set -euo pipefail
source "$EXPORTED"
curl() { command curl --silent --show-error --write-out '%{stderr}%{http_code}\\n' "$@"; }
"""
_EPILOGUE = '\ndeclare -px > "$EXPORTED"\n'

# A page shows these in full; here fewer users and calls do.
_SHORTER = {
    "ldprecover demo": " --users 500",
    "ldprecover sim users cities": " --users 2000",
    "ldprecover sim users rehearsal --tickets": " --users 200",
}
_PYTHON = [block.text for page in PAGES for block in page.blocks if block.language == "python"]
# A longer example begins with these, prints, and is run too.
_BEGINNINGS = {text for text in _PYTHON for longer in _PYTHON if longer.startswith(f"{text}print(")}

# What a reader does before anything else; the tests run where it has been done. The tests of
# `study` run the table of the paper.
_DONE = re.compile(
    r"make (install|ldprecover|demo|test)|source \.venv/bin/activate|ldprecover serve( --open)?"
    r"|ldprecover study paper table1 --output results"
)


class Session:
    """One page's blocks, run in order on one server in one folder, with what is exported carried
    along.
    """

    def __init__(
        self, page: Page, server: ServerProcess, folder: Path, variables: dict[str, str]
    ) -> None:
        self.page = page
        self.server = server
        self.folder = folder
        (folder / "docs").symlink_to(ROOT / "docs")
        self._exported = folder / "exported"
        self._exported.touch()
        self._environment = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            "HOME": str(folder),
            "XDG_STATE_HOME": str(folder / "state"),
            "LANG": "C.UTF-8",
            "PYTHONUTF8": "1",
            "PYTHONWARNINGS": "error",
            # which count to the same bits, and need not be imported or compiled
            "LDPRECOVER_KERNELS": "numpy",
            "EXPORTED": str(self._exported),
            "LDPRECOVER_URL": server.url,
            **variables,
        }
        self._printed: str | None = None  # by the block before this one
        self._status: int | None = None  # of the last answer curl got

    def run(self) -> None:
        """Run every block; an assertion names the first that does not do what the page shows."""
        for block in self.page.blocks:
            where = f"{self.page.name}, line {block.line}"
            if block.language == "python":
                if block.text not in _BEGINNINGS:
                    self._run_python(block, where)
            elif block.language == "javascript":
                self._run_javascript(block, where)
            elif block.language in ("console", "bash"):
                self._run_console(block, where)
            elif block.language == "json":
                assert self._printed is not None, (
                    f"{where}: JSON that answers nothing cannot be tried"
                )
                shown, got = json.loads(block.text), json.loads(self._printed)
                assert matches(shown, got), f"{where}: the answer is\n{json.dumps(got, indent=2)}"
                if "type" in shown:
                    assert self._status == shown["status"], (
                        f"{where}: the answer has status {self._status}"
                    )
                    self._status = None
                self._printed = None
            elif block.language == "text":
                assert self._printed is not None, f"{where}: output of nothing"
                assert block.text.rstrip() == self._printed.rstrip(), (
                    f"{where}: the output is\n{self._printed}"
                )
                self._printed = None
            elif block.language != "sh":  # tests/deployment runs those
                assert not block.language, f"{where}: nobody tries {block.language}"
        self._expect_success("the end of the page")

    def _run_python(self, block: Block, where: str) -> None:
        self._expect_success(where)
        self._finished(self._python("-c", block.text.replace(_ELSEWHERE, self.server.url)), where)

    def _run_javascript(self, block: Block, where: str) -> None:
        self._expect_success(where)
        modules = self.folder / "node_modules"
        modules.mkdir(exist_ok=True)
        if not (modules / "ldprecover").exists():
            (modules / "ldprecover").symlink_to(ROOT / "client" / "js")
        program = block.text.replace(_ELSEWHERE, self.server.url)
        self._finished(self._started(["node", "--input-type=module", "-e", program]), where)

    def _finished(self, ended: subprocess.CompletedProcess[str], where: str) -> None:
        assert ended.returncode == 0, f"{where}: {ended.stderr}"
        self._printed = ended.stdout

    def _run_console(self, block: Block, where: str) -> None:
        for command in _commands(block.text):
            self._expect_success(where)
            if _DONE.fullmatch(command):
                continue
            adapted = self._adapted(command)
            exporting = re.fullmatch(r"export (\w+)=\$\((ldprecover [^$()|&;<>]+)\)", adapted)
            if exporting:
                ended = self._ldprecover(exporting[2])
                with self._exported.open("a") as exported:
                    exported.write(f'declare -x {exporting[1]}="{ended.stdout.strip()}"\n')
                ended.stdout = ""
            elif adapted.startswith("ldprecover ") and not re.search(
                r"[^\w\s.,:/='\"-]", adapted
            ):  # nothing for a shell
                ended = self._ldprecover(adapted)
            else:
                ended = self._started(["bash", "-c", _PRELUDE + adapted + _EPILOGUE])
            self._finished(ended, f"{where}: {command}")
            if re.search(r"\bcurl\b", command):
                self._status = int(ended.stderr.split()[-1])

    def _ldprecover(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run `ldprecover …` without a shell, which would start an interpreter."""
        return self._python("-m", "ldprecover_cli", *shlex.split(command)[1:])

    def _python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        process = start_python(
            *arguments, folder=self.folder, environment=self._environment | self._exports()
        )
        out, err = process.communicate()
        return subprocess.CompletedProcess(arguments, process.wait(), out, err)

    def _started(self, arguments: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            arguments,
            cwd=self.folder,
            env=self._environment | self._exports(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def _exports(self) -> dict[str, str]:
        """What commands exported that Python blocks, which do not run in bash, can see."""
        pattern = r'^declare -x (LDPRECOVER_\w+)="(.*)"$'
        return dict(re.findall(pattern, self._exported.read_text(), re.MULTILINE))

    def _adapted(self, command: str) -> str:
        command = command.replace(".venv/bin/", "").replace(_ELSEWHERE, self.server.url)
        command = command.replace("--calls 2000 ", "--calls 200 ")
        command = command.replace("audit --epsilon 1 ", "audit --epsilon 1 --calls 2000 ")
        for start, options in _SHORTER.items():
            if command.startswith(start) and "--help" not in command:
                command += options
        return command

    def _expect_success(self, where: str) -> None:
        """Fail when an answer before this block was an error that the page does not show."""
        assert self._status is None or self._status < 400, (
            f"before {where}: {self._status}, {self._printed}"
        )
        self._status = None


def _commands(text: str) -> list[str]:
    """Return a console block's commands: from one "$ " to the next, or else its lines."""
    if not re.search(r"^\$ ", text, re.MULTILINE):
        return text.replace("\\\n", "").splitlines()
    return [command.strip() for command in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]]


def matches(shown: Any, got: Any) -> bool:
    """Tell whether an answer is as shown.

    "…" stands for any value; within a string for any text; at the end of an array for the rest of
    it.
    """
    if shown == "…":
        return True
    if isinstance(shown, dict):
        return (
            isinstance(got, dict)
            and shown.keys() == got.keys()
            and all(matches(shown[k], got[k]) for k in shown)
        )
    if isinstance(shown, list):
        if not isinstance(got, list):
            return False
        if shown[-1:] == ["…"]:
            shown, got = shown[:-1], got[: len(shown) - 1]
        return len(shown) == len(got) and all(map(matches, shown, got))
    if isinstance(shown, str) and isinstance(got, str):
        return re.fullmatch(".*".join(map(re.escape, shown.split("…"))), got, re.DOTALL) is not None
    return type(shown) is type(got) and bool(shown == got)


def has_tools(page: Page | None = None) -> bool:
    """Tell whether the commands of pages, and a page's own, can be run here."""
    is_javascript = page is not None and any(
        block.language == "javascript" for block in page.blocks
    )
    writes_reports = page is not None and any(
        "file reports " in block.text for block in page.blocks
    )
    has_pyarrow = not writes_reports or find_spec("pyarrow") is not None
    return has_pyarrow and all(
        map(shutil.which, ["bash", "curl", *(["node"] if is_javascript else [])])
    )
