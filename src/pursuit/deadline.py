"""The time at which a run must end."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadline:
    """A time of `time.perf_counter`. Loops inside an iteration look whether it has `passed`, and end where the point is
    that of its weights and atoms."""

    end: float = math.inf

    @property
    def passed(self) -> bool:
        """Whether the time is over."""
        return time.perf_counter() >= self.end
