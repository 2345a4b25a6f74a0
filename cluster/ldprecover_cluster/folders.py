"""Folders of a dataset, local or at a URL that fsspec opens, with atomic writes."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ldprecover_cluster.errors import ReportDatasetError
from ldprecover_cluster.optional_imports import optional_module

PARTIAL_SUFFIX = ".half"
"""Suffix of a file that is being written; its name begins with a dot."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Folder:
    """A folder whose files are written completely or not at all.

    A missing file raises FileNotFoundError; other errors of the file system ReportDatasetError.
    """

    def __init__(self, url: str | Path) -> None:
        core = optional_module("fsspec.core")
        _check_protocol(str(url))
        with translate_errors(str(url)):
            self._files, self._path = core.url_to_fs(os.fspath(url))
        self._path = self._path.rstrip("/") or "/"
        self.url: str = self._files.unstrip_protocol(self._path)
        """Absolute URL, valid on other machines if they share the storage."""
        self.local = Path(self._path) if self.url.startswith("file://") else None
        """The folder on this machine, or None."""

    def __str__(self) -> str:
        return self.url if self.local is None else str(self.local)

    def read(self, name: str, limit: int) -> bytes:
        """Return the first `limit` bytes of a file; a local file must be a regular file."""
        with translate_errors(f"{self}/{name}"):
            if self.local is not None:
                return _read_regular(self.local / name, limit)
            with self._files.open(f"{self._path}/{name}", "rb") as file:
                data: bytes = file.read(limit)
                return data

    def write(self, name: str, data: Any) -> None:
        """Write a file; it is on disk and complete on return."""
        with translate_errors(f"{self}/{name}"):
            if self.local is not None:
                write_atomically(self.local / name, data)
                return
            path = f"{self._path}/{name}"
            self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
            self._files.pipe_file(path, bytes(data))

    def exists(self, name: str) -> bool:
        """Return whether a file or folder exists."""
        with translate_errors(f"{self}/{name}"):
            self._files.invalidate_cache()
            return bool(self._files.exists(f"{self._path}/{name}"))

    def names(self) -> list[str]:
        """Return the sorted names in the folder; empty if it does not exist."""
        with translate_errors(str(self)):
            self._files.invalidate_cache()
            with suppress(FileNotFoundError):
                paths = (path.rstrip("/") for path in self._files.ls(self._path, detail=False))
                # Object stores may list a marker for the folder itself.
                return sorted(path.rpartition("/")[2] for path in paths if path != self._path)
            return []

    def remove(self, name: str) -> None:
        """Delete a file or a folder with its content, if it exists."""
        with translate_errors(f"{self}/{name}"), suppress(FileNotFoundError):
            self._files.rm(f"{self._path}/{name}", recursive=True)


def _check_protocol(url: str) -> None:
    """Raise ReportDatasetError if no installed package opens this URL as a folder."""
    protocol, separator, _ = url.partition("://")
    if not separator:
        return
    import fsspec
    from fsspec.archive import AbstractArchiveFileSystem

    if "::" in url:  # fsspec opens it, but its files have no URL that workers could open
        raise ReportDatasetError(f"cannot open {url}: chained URLs are not supported")
    try:
        kind = fsspec.get_filesystem_class(protocol)
    except (ImportError, ValueError) as error:
        raise ReportDatasetError(f"cannot open {url}: {error}") from error
    if issubclass(kind, AbstractArchiveFileSystem):
        raise ReportDatasetError(f"cannot open {url}: it is an archive; unpack it")


def _read_regular(path: Path, limit: int) -> bytes:
    """Return the first bytes of a regular file; reject others, such as pipes, which may block."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except BlockingIOError:  # another process, such as a file server, has a lease on the file
        handle = os.open(path, os.O_RDONLY)
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise ReportDatasetError(f"{path} is not a regular file")
        return file.read(min(limit, status.st_size))


def write_atomically(path: Path, data: Any) -> None:
    """Write a local file completely or not at all; it is on disk on return.

    Missing folders are made. They and the file are accessible only to their owner.
    """
    make_folder(path.parent)
    # With the process id: several processes may write the same file.
    partial = path.with_name(f".{path.name}.{os.getpid()}{PARTIAL_SUFFIX}")
    try:
        with os.fdopen(
            os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb"
        ) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    sync(path.parent)


def make_folder(path: Path) -> None:
    """Make a folder and its parents, accessible only to their owner; on disk on return.

    Raises ReportDatasetError if the path exists and is not a folder, and OSError.
    """
    if path.is_dir():
        return
    make_folder(path.parent)
    try:
        path.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError as error:
        kind = "a broken link" if path.is_symlink() else "a file"
        raise ReportDatasetError(f"{path} is {kind}, not a folder") from error
    sync(path.parent)


def append(path: Path, data: Any) -> None:
    """Append bytes to a local file that only its owner can read."""
    with os.fdopen(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "wb", buffering=0
    ) as file:
        remaining = memoryview(data).cast("B")
        while remaining:
            remaining = remaining[file.write(remaining) :]


def sync(path: Path) -> None:
    """Flush a file, or the names in a folder, to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def translate_errors(where: str) -> Iterator[None]:
    """Raise errors of a file system as ReportDatasetError."""
    try:
        yield
    except (FileNotFoundError, ReportDatasetError):
        raise
    except OSError as error:
        if error.errno in _FULL:
            raise ReportDatasetError(f"the disk of {where} is full") from error
        raise ReportDatasetError(f"{where}: {error.strerror or error}") from error
    except Exception as error:  # file systems of other packages raise any exception
        raise ReportDatasetError(f"{where}: {type(error).__name__}: {error}") from error
