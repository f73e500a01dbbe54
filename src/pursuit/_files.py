"""Text files that are written as a whole or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_whole(text: str, path: Path) -> None:
    """Write a file as a whole or not at all: to a temporary one beside it, which then takes its name."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with temporary.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
