"""The state of a run is the fields of its parts, so that another run can go on from there.

A part of a run is a dataclass. The arguments of its constructor belong to the problem. Its other fields, those with
`field(init=False)`, are its state: numbers, texts, arrays and atoms, in lists and dictionaries. Parts among its fields
have a state of their own; a plain function has none.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

Fields = dict[str, Any]
"""Values by name: the state of a part, the memory of a run, what a result says."""


class Stateful:
    """A part of a run: a dataclass whose state is the fields that its constructor does not take.

    >>> from dataclasses import dataclass, field
    >>> import pursuit as ps
    >>> @dataclass(eq=False)
    ... class Counter(ps.Stateful):
    ...     step: int
    ...     n: int = field(default=0, init=False)
    ...     def __call__(self):
    ...         self.n += self.step
    ...         return self.n
    >>> one, other = Counter(2), Counter(2)
    >>> one(), one(), one.state(), other.restore(one.state()), other()
    (2, 4, {'n': 4}, None, 6)
    """

    def state(self) -> Fields:
        """A copy of the state."""
        values = {item.name: (item.init, getattr(self, item.name)) for item in fields(self)}  # type: ignore[arg-type]
        return {name: state_of(value) for name, (init, value) in values.items() if not init or is_stateful(value)}

    def restore(self, state: Fields) -> None:
        """Take over the state of an equal part of another run."""
        for name, value in state.items():
            setattr(self, name, restore(getattr(self, name), value))


def is_stateful(part: object) -> bool:
    """Whether something has a state: a part of a run, a generator of random numbers, or a tuple with such parts."""
    return isinstance(part, Stateful | np.random.Generator) or (isinstance(part, tuple) and any(map(is_stateful, part)))


def state_of(value: object) -> Any:
    """The state of a part, of a tuple of parts, or a copy of a value."""
    if isinstance(value, Stateful):
        return value.state()
    if isinstance(value, np.random.Generator):
        return value.bit_generator.state
    if isinstance(value, tuple | list):
        return [state_of(item) for item in value]
    if callable(value):
        return None
    return value.copy(order="K") if isinstance(value, np.ndarray) else value


def restore(own: Any, state: Any) -> Any:
    """`own` with this state where it is a part or a tuple of parts, else a copy of the value that was stored."""
    if isinstance(own, Stateful):
        own.restore(state)
    elif isinstance(own, np.random.Generator):
        own.bit_generator.state = state
    elif isinstance(own, tuple) and any(callable(part) or is_stateful(part) for part in own):
        for part, part_state in zip(own, state, strict=True):
            restore(part, part_state)
    elif not callable(own):
        return state_of(state)
    return own
