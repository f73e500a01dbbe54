"""Closures with a state, until they are dataclasses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pursuit.state import Stateful, is_stateful, restore, state_of


class Remembers(Stateful):
    remembers: tuple[str, ...] = ()

    def state(self) -> dict[str, Any]:
        return {name: state_of(getattr(self, name)) for name in self.remembers}

    def restore(self, state: Mapping[str, Any]) -> None:
        for name, kept in state.items():
            setattr(self, name, restore(vars(self).get(name), kept))


class Memory(Remembers):
    def __init__(self, **values: Any) -> None:
        vars(self).update(values)

    @property
    def remembers(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(name for name, value in vars(self).items() if is_stateful(value) or not callable(value))

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...


class WithMemory(Remembers):
    remembers = ("parts",)

    def __init__(self, function: Callable[..., Any], *parts: Any) -> None:
        self.function, self.parts = function, tuple(part for part in parts if is_stateful(part))

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)
