"""Files that are written as a whole or not at all, and by one process at a time."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """The name of a new file to write, in the folder of `path` and with its suffix; it then takes the place of `path`.

    After an exception, Ctrl-C included, the file at `path` is what it was. A link keeps its place: what it points to is
    replaced.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(f"{folder}/a.txt") as new:
    ...         _ = new.write_text("whole")
    ...     [(file.name, file.read_text()) for file in Path(folder).iterdir()]
    [('a.txt', 'whole')]
    """
    path = Path(path).resolve()
    if path.exists() and not path.is_file():  # a folder, or a device, which must not become a file
        raise ValueError(f"{path} is not a file that can be replaced; give the name of a file.")
    temporary = path.with_name(f".{secrets.token_hex(4)}.{path.name}")
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_whole(text: str, path: Path) -> None:
    """Write a text file as a whole or not at all."""
    with replacing(path) as new:
        new.write_text(text, encoding="utf-8")


@contextmanager
def locked(path: str | os.PathLike[str]) -> Iterator[None]:
    """A block that one process (and one thread) at a time enters for one path; the others wait.

    The lock is the operating system's, on a file `.name.lock` beside the path, which is removed at the end. It
    ends with the process that holds it, however that ends. On file systems without locks nobody waits.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with locked(f"{folder}/a.txt"):
    ...         print([file.name for file in Path(folder).iterdir()])
    ...     print(list(Path(folder).iterdir()))
    ['.a.txt.lock']
    []
    """
    path = Path(path).resolve()
    lock = path.with_name(f".{path.name}.lock")
    held = -1
    while held < 0:  # the file that was locked may be one that its last owner has just removed
        descriptor = os.open(lock, os.O_CREAT | os.O_RDWR, 0o666)
        try:
            _wait_for(descriptor)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), os.stat(lock)):
                    held = descriptor
        finally:
            if held < 0:
                os.close(descriptor)
    try:
        yield
    finally:
        with suppress(OSError):  # Windows keeps files that are open
            lock.unlink()
        os.close(held)


def _wait_for(descriptor: int) -> None:
    """Wait for the lock of an open file."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        while True:
            with suppress(OSError):  # after ten seconds
                msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined, unused-ignore]
                return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError as why:
        if why.errno not in (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP):
            raise
