"""Runs as files: what a run remembers, without pickle, and whether a problem is the one that a run was about.

A file is a NumPy archive of plain arrays. One of them is a text in JSON; it says how the others make up the trace and
the memory of the run (`pursuit.state`). Columns of dictionaries are stored as their numbers, other atoms as their
arrays.
"""

from __future__ import annotations

import json
import math
import os
import re
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pursuit.arguments import describe, host_array, is_array, number
from pursuit.arrays import Array, Space, everywhere, flat, host
from pursuit.atoms.base import Atoms, as_atom
from pursuit.atoms.combinations import unscaled
from pursuit.atoms.factored import Factors, RankOneAtom
from pursuit.atoms.frames import Atom, kinds
from pursuit.atoms.views import is_sparse
from pursuit.domains import Answer, Domain
from pursuit.files import locked, replacing
from pursuit.objectives import Objective
from pursuit.run.trace import Trace
from pursuit.state import Fields
from pursuit.updates import Now

FORMAT = "a run of pursuit, 2"


class Kept(NamedTuple):
    """A run that can be continued: its memory, the rows of its trace, its first point and its time in seconds."""

    memory: Fields
    rows: list[tuple[float, ...]]
    first: Array
    seconds: float


# ---------------------------------------------------------------------- is it the same problem?


class Fingerprint(NamedTuple):
    """A problem and a method, in words and in numbers: the value of f at the first point, and products of random
    vectors with the gradient there, with its products with the atoms, and with the arrays of f. A change anywhere in
    the data changes them."""

    words: dict[str, str]
    numbers: dict[str, float]
    sizes: dict[str, float]
    """The sums of the moduli of the terms of each number, by which rounding errors are measured."""

    @classmethod
    def of(cls, f: Objective, domain: Domain, method: Sequence[object], x: Array) -> Fingerprint:
        """That of a problem at a point where f is finite. It takes one gradient and one oracle call."""
        space, print_ = Space.of(x), cls(words_of(f, domain, method), {}, {})
        print_.words["space"] = f"{space.shape} {space.dtype} {space.xp.__name__}"
        value, grad = f.value_and_grad(x)
        print_._add("f at the first point", np.append(host(flat(grad)), float(value)))
        for name, array in _arrays_of(f):
            print_._add(f"{name} of f", array)
        for b, A in enumerate(part.asked for part in domain.parts):
            if A.size is None:  # only as accurate as its search
                print_._add(f"summand {b} of domain", np.full(1, as_atom(A.lmo(grad)).dot(space, grad)), 1e4)
                for name, array in _arrays_of(A):
                    print_._add(f"{name} of summand {b} of domain", array)
            else:
                print_._add(f"summand {b} of domain", A.scores(grad))
        return print_

    def _add(self, name: str, array: np.ndarray, error: float = 1.0) -> None:
        numbers = array.astype(np.float64).ravel()
        finite = np.where(np.isfinite(numbers), numbers, np.sign(numbers))
        terms = finite * np.random.default_rng(0).standard_normal(array.size)
        self.numbers[name], self.sizes[name] = float(terms.sum()), error * float(np.abs(terms).sum())

    def difference(self, other: Fingerprint, eps: float) -> str | None:
        """What differs; None: nothing does."""
        for name, text in self.words.items():
            if other.words.get(name) != text:
                return name
        for name, size in self.sizes.items():
            if name in other.numbers and not abs(self.numbers[name] - other.numbers[name]) <= 1e3 * eps * size:
                return name
        return None


def _arrays_of(thing: Objective | Atoms) -> Iterator[tuple[str, np.ndarray]]:
    """The arrays that an objective or a set is made of, and those of the objectives and sets that it is made of."""
    for name, value in sorted(vars(thing).items()):
        if isinstance(value, Objective | Atoms):
            yield from ((f"{name}.{inner}", array) for inner, array in _arrays_of(value))
        elif isinstance(value, np.ndarray) or is_sparse(value):
            array = value.data if not isinstance(value, np.ndarray) else value
            yield from [(name, array)] if array.dtype.kind in "fiub" else []


def difference(run: Kept, f: Objective, domain: Domain, now: Fingerprint, before: Fingerprint) -> str | None:
    """What differs between a problem and that of a run; None: nothing does. Where the run ended, f has the same
    gradient, the sets own the atoms that were named, and they have none below the bounds that were proved."""
    space, last = Space.of(run.first), run.memory["now"]
    for b, answer in enumerate([] if last is None else last.answers):
        part, atom = domain.parts[b], answer.atoms[0]
        error = 1e7 * space.eps * space.norm(last.grad) * atom.norm(space)
        lowest = math.inf if part.asked.size is not None else as_atom(part.asked.lmo(last.grad)).dot(space, last.grad)
        if not part.owns(space, atom) or (answer.lower is not None and lowest + part.price < answer.lower - error):
            return f"summand {b} of domain"
    if last is not None and f.exact:
        grad, unit = f.value_and_grad(run.memory["active"]["x"])[1], run.memory["certify"]["_scale"]
        if not space.norm(grad - last.grad) <= 1e3 * space.eps * max(unit, space.norm(last.grad)):
            return "f at the last point"
    return now.difference(before, space.eps)


def words_of(f: Objective, domain: Domain, method: Sequence[object]) -> dict[str, str]:
    """A problem and a method in words, without the addresses of objects."""
    names = "f", "domain", "update", "oracle", "refine"
    words = {name: re.sub(r" at 0x\w+", "", repr(part)) for name, part in zip(names, (f, domain, *method), strict=True)}
    return words | {"factor of domain": repr(factors_of(domain))}


def factors_of(domain: Domain) -> list[tuple[float, float]]:
    """The factor and the price of every summand."""
    return [(unscaled(part.A)[1], part.price) for part in domain.parts]


# ---------------------------------------------------------------------- values as texts and arrays


class Packer:
    """Makes a JSON value of a memory: numbers and texts stay, all else becomes a pair [kind, content]. Arrays are put
    aside, each once, and so are atoms: what was one object is one object afterwards."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.arrays: list[np.ndarray] = []
        self.atoms: list[Any] = []
        self._places: dict[int, tuple[int, Any]] = {}  # id -> the place, and the object, which keeps its id

    def pack(self, value: object) -> Any:
        """The JSON value."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, Atom):
            return ["atom", self._place(value, self.atoms, self._pack_atom)]
        if isinstance(value, np.ndarray):
            return ["array", self._place(value, self.arrays, np.asarray)]
        if isinstance(value, Factors | tuple | list):
            return [type(value).__name__.lower(), [self.pack(each) for each in value]]
        if isinstance(value, dict):
            return ["dict", {name: self.pack(each) for name, each in value.items()}]
        if isinstance(value, Answer | Now):
            return [type(value).__name__.lower(), [self.pack(getattr(value, item.name)) for item in fields(value)]]
        if is_array(value):  # of another array library
            return ["elsewhere", self._place(value, self.arrays, lambda a: host_array(a, "an array"))]
        raise TypeError(
            f"{describe(value)} cannot be stored; sources of atoms must be numbers, texts, arrays or tuples."
        )

    def _place(self, thing: object, table: list[Any], convert: Callable[[Any], Any]) -> int:
        if id(thing) not in self._places:
            converted = convert(thing)
            self._places[id(thing)] = len(table), thing
            table.append(converted)
        return self._places[id(thing)][0]

    def _pack_atom(self, atom: Atom) -> Any:
        if type(atom) not in kinds().values():
            raise TypeError(f"atoms of the kind {type(atom).__name__} cannot be stored; run without checkpoint=.")
        if type(atom) is Atom and atom.source is not None:
            for b, part in enumerate(self.domain.parts):
                own = part.asked.rebuild(atom)
                if own is not None and type(own) is Atom and own.coef == atom.coef and _same(own.vector, atom.vector):
                    return ["own", [b, self.pack(atom.source), atom.coef]]
        content = [
            self._pack_view(atom) if value is not None and value is view(atom) else self.pack(value)
            for value in atom.arguments
        ]
        return [type(atom).__name__, content]

    def _pack_view(self, atom: Atom) -> Any:
        """The summand whose matrices are seen in this way."""
        for b, part in enumerate(self.domain.parts):
            if view(part.asked.rebuild(atom)) is view(atom):
                return ["view", b]
        raise TypeError(f"{atom!r} is no atom of {self.domain!r} and cannot be stored; run without checkpoint=.")


class Unpacker:
    """Makes the memory of a JSON value again."""

    def __init__(
        self, domain: Domain, like: Callable[[np.ndarray], Array], arrays: Sequence[Array], atoms: Sequence[list[Any]]
    ) -> None:
        self.domain, self.like, self.arrays, self._packed = domain, like, arrays, atoms
        self._atoms: dict[int, Atom] = {}

    def unpack(self, value: object) -> Any:
        """The value that was packed."""
        if not isinstance(value, list):
            return value
        kind, content = value
        if kind in ("array", "elsewhere"):
            return self.arrays[content] if kind == "array" else self.like(self.arrays[content])
        if kind == "atom":
            if content not in self._atoms:
                self._atoms[content] = self._unpack_atom(*self._packed[content])
            return self._atoms[content]
        if kind == "dict":
            return {name: self.unpack(each) for name, each in content.items()}
        items = [self.unpack(each) for each in content]
        if kind in ("answer", "now"):
            return Answer(*items) if kind == "answer" else Now(*items)
        return {"list": list, "tuple": tuple, "factors": Factors}[kind](items)

    def _unpack_atom(self, kind: str, content: list[Any]) -> Atom:
        if kind == "own":
            b, source, coef = content
            own: Atom | None = self.domain.parts[b].asked.rebuild(Atom(np.zeros(()), self.unpack(source), coef))
            assert own is not None
            return own
        make: Any = kinds()[kind]
        if kind != RankOneAtom.__name__:
            return make(*map(self.unpack, content))  # type: ignore[no-any-return]
        u, v, (_, b), coef, source = content
        atom = make(self.unpack(u), self.unpack(v), None, coef, self.unpack(source))
        atom.view = self.domain.parts[b].asked.rebuild(atom).view
        return atom  # type: ignore[no-any-return]


def view(atom: Atom | None) -> object:
    """Which entries of its matrix a rank-one atom shows; None for other atoms."""
    return atom.view if isinstance(atom, RankOneAtom) else None


def _same(a: Array, b: Array) -> bool:
    return a.shape == b.shape and everywhere(a == b)


# ---------------------------------------------------------------------- files


def previous(path: Path) -> Path:
    """The file before the last."""
    return path.with_name(f"{path.stem}.previous{path.suffix}")


def write(path: Path, run: Kept, fingerprint: Fingerprint, domain: Domain) -> None:
    """Write a run as a whole or not at all; the file that was there becomes the previous one."""
    packer = Packer(domain)
    tree = packer.pack(run._asdict() | {"rows": np.array(run.rows, dtype=np.float64)})
    text = {
        "format": FORMAT,
        "fingerprint": fingerprint,
        "atoms": packer.atoms,
        "arrays": len(packer.arrays),
        "run": tree,
    }
    arrays: Fields = {f"array_{i}": a for i, a in enumerate(packer.arrays)}
    with replacing(path) as new:
        with new.open("wb") as file:
            np.savez(file, text=np.frombuffer(json.dumps(text).encode(), dtype=np.uint8), **arrays)
        if path.exists():
            path.replace(previous(path))


class Stored(NamedTuple):
    """A file of a run, read but not yet understood."""

    text: Fields
    arrays: list[np.ndarray]

    @property
    def fingerprint(self) -> Fingerprint:
        return Fingerprint(*self.text["fingerprint"])

    def run(self, domain: Domain, like: Callable[[np.ndarray], Array]) -> Kept:
        """The run; `like` makes arrays of the user's library."""
        kept = Unpacker(domain, like, self.arrays, self.text["atoms"]).unpack(self.text["run"])
        return Kept(**kept | {"rows": [_row(row) for row in kept["rows"].tolist()]})


def _row(row: list[float]) -> tuple[float, ...]:
    iteration, value, gap, atoms, calls, *rest = [*row, *[math.nan] * (len(Trace.COLUMNS) - len(row))]
    return int(iteration), value, gap, int(atoms), int(calls), *rest


def read(path: Path) -> Stored | None:
    """The file of a run, or the previous one where it is missing or damaged, which then takes its place; None where
    there is neither."""
    for file in (path, previous(path)):
        if file.exists():
            try:
                stored = _read(file)
            except Exception:  # a flipped bit may raise anything in zipfile, zlib or NumPy
                continue
            if file != path:
                file.replace(path)
            return stored
    if path.exists():
        raise ValueError(f"{path} is no checkpoint of a run, or it is damaged; give another name, or delete it.")
    return None


def _read(path: Path) -> Stored:
    with zipfile.ZipFile(path) as parts:
        if any(part.compress_type != zipfile.ZIP_STORED for part in parts.infolist()):
            raise ValueError("checkpoints are not compressed, so that they unpack to their own size")
        if parts.testzip() is not None:
            raise ValueError("a checksum is wrong")
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        text = json.loads(archive["text"].tobytes())
        if text["format"] != FORMAT:
            raise ValueError
        return Stored(text, [archive[f"array_{i}"] for i in range(text["arrays"])])


class Checkpoint:
    """The file of a run that is under way, written at its first state, every so many seconds, and at its end."""

    def __init__(self, path: object, every: object) -> None:
        if not isinstance(path, str | os.PathLike) or not str(path):
            raise TypeError(f"checkpoint is {describe(path)}; give the name of a file.")
        if not number(every) >= 0:
            raise ValueError(f"every is {describe(every)}; give the seconds between two checkpoints, at least 0.")
        self.path, self.every = Path(os.fspath(path)).resolve(), number(every)
        if not self.path.parent.is_dir():
            raise ValueError(f"checkpoint is {describe(path)}, in a folder that does not exist; make the folder first.")
        self._written = -math.inf
        self._fingerprint: Fingerprint | None = None

    @property
    def due(self) -> bool:
        """Whether it is time to write."""
        return time.perf_counter() - self._written >= self.every

    def resume(self, f: Objective, domain: Domain, method: Sequence[object]) -> Kept | None:
        """The run of the file, None where there is no file yet. Refuse the run of another problem."""
        with locked(self.path):
            for unfinished in self.path.parent.glob(f".????????.{self.path.name}"):  # of a process that was killed
                unfinished.unlink(missing_ok=True)
            stored = read(self.path)
        if stored is None:
            return None
        differs = next((n for n, w in words_of(f, domain, method).items() if stored.fingerprint.words[n] != w), None)
        if differs is None:
            run = stored.run(domain, _like(f, domain))
            own = Fingerprint.of(f, domain, method, run.first)
            differs = difference(run, f, domain, own, stored.fingerprint)
        if differs is not None:
            raise ValueError(f"{self.path} is the checkpoint of another run: {differs} differs; give another name.")
        self._fingerprint, self._written = stored.fingerprint, time.perf_counter()
        return run

    def write(self, run: Kept, f: Objective, domain: Domain, method: Sequence[object]) -> None:
        """Write the run."""
        if self._fingerprint is None:
            self._fingerprint = Fingerprint.of(f, domain, method, run.first)
        with locked(self.path):
            write(self.path, run, self._fingerprint, domain)
        self._written = time.perf_counter()


def _like(f: Objective, domain: Domain) -> Callable[[np.ndarray], Array]:
    """A function that makes arrays of the problem's library, on its device."""
    space = next((s for s in (f.space, *(part.A.space for part in domain.parts)) if s is not None), None)
    return np.asarray if space is None else lambda a: space.xp.asarray(a, device=space.device)
