"""How every command ends: errors of one sentence, exit codes, signals, and checks of files before the work.

Exit codes: 0 good; 1 the run failed, or a claim does not hold; 2 wrong input, of the command line or a file; 130 Ctrl-C
and 143 SIGTERM, after which what was done by then has been written.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from numpy.linalg import LinAlgError
from typer.core import TyperGroup

if TYPE_CHECKING:
    from rich.table import Table

ClickError: Any = typer.BadParameter.__base__
"""Wrong command lines, as the click that typer has calls them: its own, or the package."""

WRONG, FAILED = 2, 1
MAX_NAMES = 5
"""Names that a message quotes before it counts the others."""


class UsageError(Exception):
    """A sentence for stderr, and the exit code."""

    def __init__(self, sentence: str, code: int = WRONG) -> None:
        super().__init__(sentence)
        self.code = code


class Interrupted(BaseException):
    """Ctrl-C or SIGTERM that ends the command at once. No solver takes it for one that asks for the best so far."""

    def __init__(self, number: int = signal.SIGINT, *_: object) -> None:
        super().__init__()
        self.code = 128 + number


@contextmanager
def signals_call(handle: Callable[..., Any]) -> Iterator[None]:
    """Ctrl-C and SIGTERM call `handle` in this block; one that is ignored, as in a background job, stays ignored."""
    numbers = [n for n in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(n) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, *_: object) -> NoReturn:
    raise Interrupted(number)


class Commands(TyperGroup):
    """The commands; every error that a user can cause becomes one sentence on stderr and an exit code."""

    def main(self, *args: Any, **options: Any) -> NoReturn:
        """Run the command of the command line, and exit."""
        try:
            with signals_call(_end):
                code = super().main(*args, **options | {"standalone_mode": False})
                sys.stdout.flush()
        except UsageError as error:
            code = _say(str(error), error.code)
        except ClickError as error:
            command = error.ctx.command_path if error.ctx else "pursuit"
            code = _say(f"{error.format_message().strip().rstrip('.')}; see {command} --help.", WRONG)
        except (Interrupted, KeyboardInterrupt, typer.Abort) as stop:
            code = _say("interrupted; nothing was written.", getattr(stop, "code", 130))
        except BrokenPipeError:  # the reader of our output has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = 0
        except SystemExit as end:  # rich's answer to a closed pipe
            code = 0 if isinstance(end.__context__, BrokenPipeError) else end.code
        except OSError as error:
            code = _say(f"{error.filename or 'a file'}: {(error.strerror or str(error)).lower()}.", WRONG)
        except (ArithmeticError, LinAlgError, MemoryError) as error:
            code = _say(f"the run failed: {str(error) or 'there is not enough memory'}.", FAILED)
        except ImportError as error:
            if error.name is not None:  # Python's own: a mistake of ours
                raise
            code = _say(str(error), WRONG)
        sys.exit(code if isinstance(code, int) else 0)


def _say(sentence: str, code: int) -> int:
    print(" ".join(sentence.split()), file=sys.stderr, flush=True)
    return code


@contextmanager
def refusals(code: int = WRONG) -> Iterator[None]:
    """Around calls of the library with the user's input: its errors are sentences for the user."""
    try:
        yield
    except LinAlgError:  # a ValueError that no input explains
        raise
    except (TypeError, ValueError) as error:
        raise UsageError(str(error), code) from error


def note(sentence: str) -> None:
    """Tell the user something that is neither a result nor an error."""
    print(f"note: {sentence}", file=sys.stderr, flush=True)


def waiting(sentence: str) -> AbstractContextManager[Any]:
    """A sign of life on stderr where that is a terminal."""
    from rich.console import Console

    return Console(stderr=True).status(sentence)


class CtrlC:
    """During a run: the first Ctrl-C or SIGTERM asks it for the best so far, the second ends the command.

    `keeps` says whether the run returns something useful when it is interrupted; `code`, afterwards, is the exit code.
    """

    def __init__(self, keeps: bool = True) -> None:
        self.keeps, self.code, self._signals = keeps, 0, signals_call(self._handle)

    def __enter__(self) -> CtrlC:
        self._signals.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: Any) -> None:
        self._signals.__exit__(None, None, None)
        if kind is KeyboardInterrupt:  # the run had nothing to return
            raise Interrupted(self.code - 128) from None

    def _handle(self, number: int, *_: object) -> NoReturn:
        if self.code or not self.keeps:
            raise Interrupted(number)
        self.code = 128 + number
        raise KeyboardInterrupt

    def finish(self, what: str) -> None:
        """Leave the command with what was there when it was interrupted, if it was."""
        if self.code:
            note(f"interrupted by {'Ctrl-C' if self.code == 130 else 'SIGTERM'}; this is {what}.")
            raise typer.Exit(self.code)


# ---------------------------------------------------------------------- options, files and output


def argument(metavar: str, text: str) -> Any:
    """An argument of a command, for `Annotated`."""
    return typer.Argument(metavar=metavar, help=text)


def option(metavar: str, text: str, **more: Any) -> Any:
    """An option with a value."""
    return typer.Option(metavar=metavar, help=text, **more)


def switch(flag: str, text: str) -> Any:
    """An option without one."""
    return typer.Option(flag, metavar="", help=text)


AsJson = Annotated[bool, switch("--json", "Print one JSON object.")]


def listed(names: Iterable[str]) -> str:
    """Names for a message: the first few, and the number of the others."""
    first = list(names)
    more = len(first) - MAX_NAMES
    return ", ".join(first[:MAX_NAMES]) + (f" and {more} more" if more > 0 else "")


def check_file(path: Path, advice: str) -> None:
    """Refuse an input that is no file, or an empty one."""
    if not path.is_file():
        raise UsageError(f"{path} {'is not a file' if path.exists() else 'does not exist'}; {advice}.")
    with path.open("rb") as file:
        if not file.read(4096).strip():
            raise UsageError(f"{path} is empty; {advice}.")


def check_outputs(outputs: dict[str, Path | None], inputs: Iterable[Path | None]) -> None:
    """Refuse, before the work, names of files that could not be written after it, or that are input."""
    used = {os.path.realpath(path): "the input" for path in inputs if path is not None}
    for name, path in outputs.items():
        if path is None:
            continue
        file = Path(os.path.realpath(path))
        if str(file) in used:
            raise UsageError(f"{name} names {path}, which is {used[str(file)]}; give the name of another file.")
        if not file.parent.is_dir():
            raise UsageError(f"{name} names {path}, and {file.parent} is not a folder; create it first.")
        if file.is_symlink() or (file.exists() and not file.is_file()):  # a link to itself, a folder, a device
            raise UsageError(f"{name} names {path}, which is not a file; give the name of a file.")
        if not all(os.access(place, os.W_OK) for place in (file, file.parent) if place.exists()):
            raise UsageError(f"{name} names {path}, where you may not write; give another folder.")
        used[str(file)] = f"the file of {name}"


def terminal_table(*columns: tuple[str, str]) -> Table:
    """A table without frames; its columns (head, kind) are "left" or "right", or "wrap" for long texts."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), show_edge=False)
    for head, kind in columns:
        table.add_column(head, justify="right" if kind == "right" else "left", no_wrap=kind != "wrap")
    return table


def print_json(values: dict[str, Any]) -> None:
    """One JSON object on stdout; numbers that JSON has no word for are null."""
    plain = json.loads(json.dumps(values), parse_constant=lambda _: None)
    print(json.dumps(plain, indent=2))
