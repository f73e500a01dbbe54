"""What the parts of a run remember from one iteration to the next, so that another run can go on from there.

The memory of a part is a value that can be copied and stored: numbers, texts, arrays and atoms, in lists and
dictionaries. A part with a memory is a `Remembers`, which names the attributes that make it up; a function with a
memory is a `WithMemory`. Parts may have parts: an update remembers what its step rule remembers.

>>> def counter():
...     memory = Memory(n=0)
...     def count():
...         memory.n += 1
...         return memory.n
...     return WithMemory(count, memory)
>>> one, other = counter(), counter()
>>> one(), one(), other.recall(one.memory()), other()
(1, 2, None, 3)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np


class Remembers:
    """A part of a run whose memory is the attributes that `remembers` names."""

    remembers: tuple[str, ...] = ()

    def memory(self) -> dict[str, Any]:
        """A copy of the memory."""
        return {name: memory_of(getattr(self, name)) for name in self.remembers}

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Take over the memory of an equal part of another run."""
        for name, kept in memory.items():
            setattr(self, name, recalled(vars(self).get(name), kept))


class Memory(Remembers):
    """Values that a function remembers; a value may be a part with a memory, and a function without one is left out."""

    def __init__(self, **values: Any) -> None:
        vars(self).update(values)

    @property
    def remembers(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(name for name, value in vars(self).items() if has_memory(value) or not callable(value))

    if TYPE_CHECKING:  # the values have types of their own

        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...


class WithMemory(Remembers):
    """A function that serves one run, and the parts in which it remembers something; those without memory may be given,
    too."""

    remembers = ("parts",)

    def __init__(self, function: Callable[..., Any], *parts: Any) -> None:
        self.function, self.parts = function, tuple(part for part in parts if has_memory(part))

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)


def remembering(function: Callable[..., Any]) -> Any:
    """The function of one run as a part with a memory, which is empty where the function has none."""
    return function if has_memory(function) else WithMemory(function)


def has_memory(part: Any) -> bool:
    """Whether something is a part with a memory: a `Remembers`, or a generator of random numbers."""
    return isinstance(part, Remembers | np.random.Generator)


def memory_of(thing: Any) -> Any:
    """The memory of a part, of a tuple of parts, or a copy of a value."""
    if isinstance(thing, Remembers):
        return thing.memory()
    if isinstance(thing, np.random.Generator):
        return thing.bit_generator.state
    if isinstance(thing, tuple | list):
        return [memory_of(each) for each in thing]
    return thing.copy(order="K") if isinstance(thing, np.ndarray) else thing


def recalled(own: Any, kept: Any) -> Any:
    """What takes the place of `own`, whose memory was kept: itself with this memory where it is a part, or a tuple of
    parts, else a copy of the value."""
    if isinstance(own, Remembers):
        own.recall(kept)
    elif isinstance(own, np.random.Generator):
        own.bit_generator.state = kept
    elif isinstance(own, tuple) and all(map(has_memory, own)):
        for part, memory in zip(own, kept, strict=True):
            recalled(part, memory)
    else:
        return memory_of(kept)
    return own
