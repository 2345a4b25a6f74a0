"""New files that get their name when they are complete."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: Path, mode: int = 0o666) -> Iterator[Path]:
    """Yield the path of an empty file in the same folder, renamed to `path` after the block.

    An exception in the block deletes it. Raises OSError, which is FileExistsError if there is a
    file `path` before or after the block.
    """
    if path.exists():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    # Beside the file: links and renames need the same file system.
    partial = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        partial.touch(mode, exist_ok=False)
        yield partial
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        try:
            os.link(partial, path)  # unlike a rename, fails if another process made the file
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            path.open("x").close()
            partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
