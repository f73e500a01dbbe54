"""Refusals: the sentence in which a call is refused, checked for its form."""

import re
import traceback
from pathlib import Path

import pytest

import pursuit as ps

SOURCES = str(Path(ps.__file__).parent)


def refusal(call):
    """The sentence in which a call is refused; fails where it is not refused, or in the words of another library."""
    with pytest.raises((TypeError, ValueError, FileNotFoundError)) as caught:
        call()
    message, last = str(caught.value), traceback.extract_tb(caught.value.__traceback__)[-1]
    assert last.filename.startswith(SOURCES), f"raised in {last.filename}: {message}"
    assert last.line.startswith("raise "), f"raised by {last.line!r}: {message}"
    assert message.endswith(".") and "\n" not in message and len(message) < 200, message
    return message


def named(message, argument):
    return re.search(rf"\b{re.escape(argument)}\b", message) is not None
