"""How every command ends: errors of one sentence, exit codes, Ctrl-C, and files that are never half-written.

==== =================================================================
code meaning
==== =================================================================
0    good
1    the run failed for numerical reasons, or a claim does not hold
2    wrong input: the command line, or a file
130  Ctrl-C; what was done by then has been written
==== =================================================================
"""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import typer
from numpy.linalg import LinAlgError
from typer.core import TyperGroup

UsageError: Any = typer.BadParameter.__base__
"""Of the click that typer has: its own, or the package."""

PACKAGE = Path(__file__).resolve().parent.parent
WRONG, FAILED, INTERRUPTED = 2, 1, 130
MOST_NAMES = 5
"""Names that a message quotes before it counts the others."""


def argument(metavar: str, text: str) -> Any:
    """An argument of a command, for `Annotated`."""
    return typer.Argument(metavar=metavar, help=text)


def option(metavar: str, text: str, **more: Any) -> Any:
    """An option with a value."""
    return typer.Option(metavar=metavar, help=text, **more)


def switch(flag: str, text: str) -> Any:
    """An option without one."""
    return typer.Option(flag, metavar="", help=text)


class Problem(Exception):
    """A sentence for stderr, and the exit code."""

    def __init__(self, sentence: str, code: int = WRONG) -> None:
        super().__init__(sentence)
        self.code = code


class Interrupted(BaseException):
    """Ctrl-C that ends the command at once. No solver takes it for the Ctrl-C that asks for what is done."""


class Commands(TyperGroup):
    """The commands; every error that a user can cause becomes one sentence on stderr and an exit code."""

    def main(self, *args: Any, **options: Any) -> NoReturn:
        """Run the command of the command line, and exit."""
        try:
            code = super().main(*args, **options | {"standalone_mode": False})
            sys.stdout.flush()
        except Problem as problem:
            code = _say(str(problem), problem.code)
        except UsageError as wrong:
            command = wrong.ctx.command_path if wrong.ctx else "pursuit"
            code = _say(f"{wrong.format_message().strip().rstrip('.')}; see {command} --help.", WRONG)
        except (Interrupted, KeyboardInterrupt, typer.Abort):
            code = _say("interrupted; nothing was written.", INTERRUPTED)
        except BrokenPipeError:  # the reader of our output has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = 0
        except OSError as problem:
            code = _say(f"{problem.filename or 'a file'}: {(problem.strerror or str(problem)).lower()}.", WRONG)
        except (ArithmeticError, LinAlgError, MemoryError) as problem:
            code = _say(f"the run failed: {str(problem) or 'there is not enough memory'}.", FAILED)
        except (ImportError, TypeError, ValueError) as wrong:
            module = _raised_in(wrong)
            if module is None:
                raise
            code = _say(str(wrong), FAILED if module == "guards" else WRONG)  # those watch the numbers of a run
        sys.exit(code if isinstance(code, int) else 0)


def _say(sentence: str, code: int) -> int:
    print(" ".join(sentence.split()), file=sys.stderr, flush=True)
    return code


def _raised_in(problem: BaseException) -> str | None:
    """The module of this package that raised the error as a sentence for users; None where a library did, or Python at
    a mistake."""
    last = traceback.extract_tb(problem.__traceback__)[-1]
    file = Path(last.filename)
    return file.stem if file.is_relative_to(PACKAGE) and (last.line or "").startswith("raise ") else None


def note(sentence: str) -> None:
    """Tell the user something that is neither a result nor an error."""
    print(f"note: {sentence}", file=sys.stderr, flush=True)


def names(found: Iterable[str]) -> str:
    """Names for a message: the first few, and the number of the others."""
    found = list(found)
    rest = len(found) - MOST_NAMES
    return ", ".join(found[:MOST_NAMES]) + (f" and {rest} more" if rest > 0 else "")


class CtrlC:
    """While a run is on: the first Ctrl-C asks it for what it has, the second ends the command.

    `keeps` says whether the run returns something useful when it is interrupted; `seen`, afterwards, whether it was.
    """

    def __init__(self, keeps: bool = True) -> None:
        self.keeps, self.seen = keeps, False

    def __enter__(self) -> CtrlC:
        self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *exception: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _handle(self, *signal_and_frame: object) -> NoReturn:
        if self.seen or not self.keeps:
            raise Interrupted
        self.seen = True
        raise KeyboardInterrupt


@contextmanager
def waiting(for_what: str) -> Iterator[None]:
    """A sign of life on stderr where that is a terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(for_what):
        yield


def check_file(path: Path, advice: str) -> None:
    """Refuse what is no file with something in it."""
    if not path.is_file():
        raise Problem(f"{path} {'is not a file' if path.exists() else 'does not exist'}; {advice}.")
    with path.open("rb") as file:
        if not file.read(4096).strip():
            raise Problem(f"{path} is empty; {advice}.")


def check_outputs(outputs: dict[str, Path | None], inputs: Iterable[Path | None]) -> None:
    """Refuse, before the work, names of files that could not be written after it, or that are input."""
    seen = {path.resolve(): "input" for path in inputs if path is not None}
    for option, path in outputs.items():
        if path is None:
            continue
        whole, folder = path.resolve(), path.resolve().parent
        if whole in seen:
            also = "the input" if seen[whole] == "input" else f"the file of {seen[whole]}"
            raise Problem(f"{option} names {path}, which is {also}; give the name of another file.")
        if not folder.is_dir():
            raise Problem(f"{option} names {path}, and {folder} is not a folder; create it first.")
        if whole.exists() and not whole.is_file():
            raise Problem(f"{option} names {path}, which is not a file; give the name of a file.")
        if not os.access(whole if whole.exists() else folder, os.W_OK) or not os.access(folder, os.W_OK):
            raise Problem(f"{option} names {path}, where you may not write; give another folder.")
        seen[whole] = option


def print_json(found: dict[str, Any]) -> None:
    """One JSON object on stdout; numbers that JSON has no word for are null."""
    print(json.dumps(_plain(found), indent=2))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
