"""A folder of a dataset, on this machine or behind a URL that fsspec opens: whole files, by their
names in it.
"""

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ldprecover_cluster.errors import ReportDatasetError
from ldprecover_cluster.extra import fsspec

HALF = ".half"
"""How the name of a file ends that is not there yet; it begins with a dot."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Folder:
    """Whole files in a folder. A file is there whole or not at all, whatever breaks off.

    What a file system says goes wrong is raised as ReportDatasetError, a file that is not there as
    FileNotFoundError.
    """

    def __init__(self, url: str | Path) -> None:
        self._core = fsspec()
        _check_protocol(str(url))
        with translated(str(url)):
            self._files, self._path = self._core.url_to_fs(os.fspath(url))
        self._path = self._path.rstrip("/") or "/"
        self.url: str = self._files.unstrip_protocol(self._path)
        """Where it is, wherever it is read from: absolute."""

    @property
    def local(self) -> Path | None:
        """The folder on this machine, or None."""
        kinds = self._files.protocol
        return (
            Path(self._path) if "file" in ((kinds,) if isinstance(kinds, str) else kinds) else None
        )

    def __str__(self) -> str:
        return self.url if self.local is None else str(self.local)

    def read(self, name: str, most: int) -> bytes:
        """Return a file's bytes, the first `most` of them. On this machine it must be a regular
        file.
        """
        with translated(f"{self}/{name}"):
            if (local := self.local) is not None:
                return _read_regular(local / name, most)
            with self._files.open(self._of(name), "rb") as file:
                data: bytes = file.read(most)
                return data

    def write(self, name: str, data: Any) -> None:
        """Write a file, on disk and in its place when it returns."""
        with translated(f"{self}/{name}"):
            if (local := self.local) is not None:
                write_whole(local / name, data)
                return
            self._files.makedirs(self._of(name).rpartition("/")[0], exist_ok=True)
            self._files.pipe_file(self._of(name), bytes(data))

    def exists(self, name: str = "") -> bool:
        """Tell whether a file or folder is there."""
        with translated(f"{self}/{name}"):
            self._files.invalidate_cache()
            return bool(self._files.exists(self._of(name)))

    def names(self) -> list[str]:
        """Return the names of what is in the folder, sorted; none where it is not there."""
        with translated(str(self)):
            self._files.invalidate_cache()
            with suppress(FileNotFoundError):
                found = (each.rstrip("/") for each in self._files.ls(self._path, detail=False))
                # Object stores may list a marker of the folder itself.
                return sorted(each.rpartition("/")[2] for each in found if each != self._path)
            return []

    def remove(self, name: str) -> None:
        """Delete a file, or a folder with all that is in it, if it is there."""
        with translated(f"{self}/{name}"), suppress(FileNotFoundError):
            if (local := self.local) is not None and (local / name).is_dir():
                shutil.rmtree(local / name)
                return
            self._files.rm(self._of(name), recursive=True)

    def _of(self, name: str) -> str:
        return f"{self._path}/{name}" if name else self._path


def _check_protocol(url: str) -> None:
    """Raise ReportDatasetError where nothing that is installed opens URLs of this kind as
    folders.
    """
    protocol, separator, _ = url.partition("://")
    if not separator:
        return
    import fsspec
    from fsspec.archive import AbstractArchiveFileSystem

    if (
        "::" in url
    ):  # fsspec opens it, but what is in it has no URL of its own, which workers would need
        raise ReportDatasetError(f"cannot open {url}: a URL within a URL is no folder")
    if protocol not in fsspec.available_protocols():
        raise ReportDatasetError(f"cannot open {url}: no file system is known as {protocol}")
    try:
        kind = fsspec.get_filesystem_class(protocol)
    except ImportError as error:
        raise ReportDatasetError(
            f"cannot open {url}: {_missing(error)} is not installed"
        ) from error
    if issubclass(kind, AbstractArchiveFileSystem):
        raise ReportDatasetError(f"cannot open {url}: an archive is no folder; unpack it")


def _missing(error: BaseException) -> str:
    """Return the name of the module that an import has failed for."""
    name = "what opens it"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ImportError) and cause.name:
            name = cause.name.partition(".")[0]
        cause = cause.__cause__ or cause.__context__
    return name


def _read_regular(path: Path, most: int) -> bytes:
    """Return the first bytes of a regular file. Others, such as pipes, are refused: they may never
    end, or begin.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except (
        BlockingIOError
    ):  # another process, such as a file server, has a lease on this regular file
        handle = os.open(path, os.O_RDONLY)
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise ReportDatasetError(f"{path} is no regular file")
        return file.read(min(most, found.st_size))


def write_whole(path: Path, data: Any) -> None:
    """Write a file of this machine by its bytes: on disk and in its place when it returns, or not
    there at all.

    Folders on the way to it are made. They and the file are for their owner alone.
    """
    make_folder(path.parent)
    half = path.with_name(
        f".{path.name}.{os.getpid()}{HALF}"
    )  # several processes may write what is the same
    try:
        with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        half.replace(path)
    except BaseException:
        half.unlink(missing_ok=True)
        raise
    synced(path.parent)


def make_folder(path: Path) -> None:
    """Make a folder, and those on the way to it, for their owner alone: on disk when it returns.

    Raises ReportDatasetError where something is there that is no folder, and OSError.
    """
    if path.is_dir():
        return
    make_folder(path.parent)
    try:
        path.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError as error:
        what = (
            "a link to a folder that is not there" if path.is_symlink() else "a file, not a folder"
        )
        raise ReportDatasetError(f"{path} is {what}") from error
    synced(path.parent)


def append(path: Path, data: Any) -> None:
    """Write bytes at the end of a file of this machine, which is its owner's alone."""
    with os.fdopen(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "wb", buffering=0
    ) as file:
        left = memoryview(data).cast("B")
        while left:
            left = left[file.write(left) :]


def synced(path: Path) -> None:
    """See that a file, or the names in a folder, are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Raise what a file system raises as ReportDatasetError, in words."""
    try:
        yield
    except (FileNotFoundError, ReportDatasetError):
        raise
    except OSError as error:
        if error.errno in _FULL:
            raise ReportDatasetError(f"the disk of {where} is full") from error
        raise ReportDatasetError(f"{where}: {error.strerror or error}") from error
    except Exception as error:  # file systems of others raise what they like
        raise ReportDatasetError(f"{where}: {type(error).__name__}: {error}") from error
