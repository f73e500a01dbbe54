"""BibTeX entries of the works to cite for an algorithm; updates name theirs as `cites`."""

from __future__ import annotations

import re
from pathlib import Path

from pursuit.domains import Cone, Domain
from pursuit.objectives import Objective
from pursuit.run.method import Given, choose
from pursuit.steps import AutoConditioned, Backtracking, StepRule
from pursuit.updates import FullyCorrective, Update


def citation(f: Objective, domain: Domain, update: Update | None = None) -> str:
    """BibTeX entries of the methods that `minimize(f, domain, update)` uses, the paper first.

    >>> import pursuit as ps
    >>> text = ps.citation(ps.LeastSquares([1.0]), ps.conv(ps.Simplex(1)), ps.Away())
    >>> [line.split("{")[1].strip(",") for line in text.splitlines() if line.startswith("@")]
    ['locatello2017unified', 'lacostejulien2015global']
    """
    update = choose(f, domain, Given(update, None, None)).method.update
    keys = ["locatello2017unified"]
    if any(isinstance(part, Cone) for part in domain.parts):
        keys.append("locatello2017greedy")
    keys.extend(update.cites)
    if isinstance(update, FullyCorrective) and f.quadratic and all(part.signless for part in domain.parts):
        keys.append("pati1993orthogonal")
    if _has(update, Backtracking):
        keys.append("pedregosa2020linearly")
    if _has(update, AutoConditioned):
        keys.append("giangtran2026auto")
    keys.extend(f.cites)
    text = Path(__file__).with_name("references.bib").read_text(encoding="utf-8")
    works = {match[1]: match[0] for match in re.finditer(r"@\w+\{(\w+),.*?\n\}", text, re.DOTALL)}
    return "\n\n".join(works.get(key, key) for key in keys)


def _has(part: Update | StepRule, kind: type) -> bool:
    """Whether an update, or its step, has a parameter of this kind."""
    return any(isinstance(p, kind) or (isinstance(p, StepRule) and _has(p, kind)) for p in vars(part).values())
