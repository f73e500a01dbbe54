"""`encode` for stacks: one dictionary for each matrix of signals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pursuit.arguments import describe


def encode_stacked(one: Callable[..., Any], D: Any, Y: Any, options: dict[str, Any]) -> list[Any]:
    """The codes of each Y[i] on D[i]; `one` is `encode`, `options` are its other arguments."""
    stacks = {name: options.pop(name) for name in ("gram", "weights") if options[name] is not None} | {"Y": Y}
    for name, stack in stacks.items():
        if getattr(stack, "ndim", 0) != 3 or len(stack) != len(D):
            raise ValueError(f"{name} is {describe(stack)}, D {describe(D)}; give as many matrices of each.")
    return [one(D[i], **{name: stack[i] for name, stack in stacks.items()}, **options) for i in range(len(D))]
