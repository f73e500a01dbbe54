"""Files that are written as a whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
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
