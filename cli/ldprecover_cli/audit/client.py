"""The client under audit: a command in a separate process."""

import os
import select
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from tempfile import TemporaryFile

from ldprecover.errors import LDPRecoverError
from ldprecover_cli.output import note, plain

_HINT, _PATIENCE = 5.0, 60.0  # seconds without a report
_LONGEST = 1 << 20  # bytes of a line
_SHOWN = 200  # characters of a warning


class ClientLostError(LDPRecoverError):
    """The client ended, or answered no report."""


class Client:
    """A command that reads a value a line and writes a report a line."""

    def __init__(self, command: Sequence[str], reset: str | None = None) -> None:
        self._command, self._reset = command, reset
        self._process: subprocess.Popen[bytes] | None = None
        self._read = b""
        self._errors = TemporaryFile()  # noqa: SIM115  closed by `close`
        self._start()

    def report(self, value: str) -> str:
        """Return the line that the command answers. Raises ClientLostError."""
        process = self._process or self._start()
        self.check_silent(0.0)
        self._write(process, value)
        output, hinted = process.stdout, False
        assert output is not None
        while b"\n" not in self._read:
            if len(self._read) > _LONGEST:
                raise ClientLostError("A report is longer than 1 MiB.")
            if not select.select([output], [], [], _PATIENCE - _HINT if hinted else _HINT)[0]:
                if hinted:
                    raise ClientLostError(f"No line in {_PATIENCE:g} s.")
                hinted = True
                note(f"No line in {_HINT:g} s: does the command flush its output after each line?")
                continue
            part = os.read(output.fileno(), 1 << 16)
            if not part:
                raise self._ended(process)
            self._read += part
        line, _, self._read = self._read.partition(b"\n")
        return line.decode(errors="surrogateescape")

    def check_silent(self, seconds: float) -> None:
        """Raise ClientLostError if more than a line for each value comes within some seconds."""
        output = self._process and self._process.stdout
        if output and not self._read and select.select([output], [], [], seconds)[0]:
            self._read = os.read(output.fileno(), 1 << 16)
        if b"\n" in self._read:
            raise ClientLostError(
                f"The command writes more than a line for each value: {self._read[:40]!r}."
            )

    def restart(self) -> None:
        """Make the command forget: by its line for this, or a new process."""
        if self._reset is not None and self._process is not None:
            self._write(self._process, self._reset)
        else:
            self._stop()

    def close(self) -> None:
        """End the command."""
        self._stop()
        self._errors.close()

    def warning(self) -> str:
        """Return the last line that the command wrote on standard error; empty without one."""
        file = self._errors.fileno()  # its position is the command's
        last = os.pread(file, _LONGEST, max(0, os.fstat(file).st_size - _LONGEST))
        lines = last.decode(errors="replace").strip().splitlines()
        return plain(lines[-1][:_SHOWN]) if lines else ""

    def _start(self) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        self._read = b""
        try:
            self._process = subprocess.Popen(  # noqa: S603  the person's own command
                self._command, stdin=pipe, stdout=pipe, stderr=self._errors, bufsize=0
            )
        except OSError as error:
            self._errors.close()
            reason = f"{self._command[0]} cannot be started: {error.strerror}."
            raise ClientLostError(reason) from error
        return self._process

    def _write(self, process: subprocess.Popen[bytes], line: str) -> None:
        assert process.stdin is not None
        if not select.select([], [process.stdin], [], _PATIENCE)[1]:
            raise ClientLostError("The command does not read its input.")
        with suppress(BrokenPipeError):  # reading says how it ended
            process.stdin.write(f"{line}\n".encode(errors="surrogateescape"))

    def _ended(self, process: subprocess.Popen[bytes]) -> ClientLostError:
        try:
            code = process.wait(_HINT)
        except subprocess.TimeoutExpired:
            return ClientLostError("The command closed its output.")
        half = f" in the middle of the line {self._read[:40]!r}" if self._read else ""
        warning = self.warning()
        ending = f": {warning}" if warning else "."
        return ClientLostError(f"The command ended with exit code {code}{half}{ending}")

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
