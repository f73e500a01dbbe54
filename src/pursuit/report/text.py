"""Numbers, problems and certificates as text. Bounds are rounded outward, so that the text is true."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from importlib import import_module

from pursuit.domains import Domain, Hull, Part, Span


def format_number(value: float, digits: int = 6) -> str:
    """A number for a table, with a true minus sign.

    >>> format_number(-1234567.0), format_number(0.1 + 0.2)
    ('−1.23457e+06', '0.3')
    """
    return f"{value:.{digits}g}".replace("-", "−", 1) if value < 0 else f"{value:.{digits}g}"


def rounded(value: float | Decimal, digits: int, *, up: bool) -> str:
    """A number with few digits, at least the value (`up`) or at most.

    >>> rounded(0.12301, 2, up=True), rounded(-0.12301, 2, up=False), rounded(2.0**-30, 2, up=True)
    ('0.13', '−0.13', '9.4e-10')
    """
    context = Context(prec=digits, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    near = context.create_decimal(Decimal(value)).normalize(context)
    exponent = near.adjusted()
    text = f"{near:f}" if -6 <= exponent < 7 else f"{near.scaleb(-exponent):f}e{exponent}"
    return text.replace("-", "−", 1) if near < 0 else text


def percent(part: float, whole: float) -> str:
    r"""`part` as a percentage of `whole`, rounded up; at least a millionth of a percent.

    >>> percent(1.0, 512.0), percent(1.0, 3.0), percent(1e-15, 1.0)
    ('0.2\xa0%', '34\xa0%', '0.000001\xa0%')
    """
    if part <= 1e-8 * whole:
        return "0.000001\u00a0%"
    return f"{rounded(Context(prec=50).divide(Decimal(part) * 100, Decimal(whole)), 2, up=True)}\u00a0%"


def proved_bound(value: float, gap: float, infimum: float) -> str | None:
    r"""How far an objective of this value is above the smallest one at most, as a percentage of the value where that
    is less than all of it; None where nothing is proved that is not known without a run (`infimum`).

    >>> proved_bound(2.0, 2.0**-10, 0.0), proved_bound(2.0, 2.0, 0.0), proved_bound(-2.0, 0.25, -math.inf)
    ('0.049\xa0%', None, '0.25')
    """
    if not math.isfinite(gap) or value - gap <= infimum < value:
        return None
    return percent(gap, value) if 0.0 < gap < value else rounded(gap, 2, up=True)


def certificate(value: float, gap: float, infimum: float, subject: str = "point of this set") -> str:
    r"""What the gap, a bound on `value - f*`, proves about an objective of this value; f* is the smallest of a subject.

    >>> certificate(2.0, 2.0**-10, 0.0, "model of this kind")
    'No model of this kind is better by more than 0.049\xa0% of the objective, which is 2 here.'
    >>> certificate(2.0, math.inf, 0.0)
    'Nothing is proved about how much better another point of this set could be.'
    """
    bound = proved_bound(value, gap, infimum)
    if bound is None:
        known = f": the only known bound is that no objective is below {rounded(infimum, 6, up=False)}"
        known = known if math.isfinite(gap) else ""
        return f"Nothing is proved about how much better another {subject} could be{known}."
    if gap <= 0.0:
        return f"No {subject} is better: the objective {format_number(value)} is the smallest one."
    share = " of the objective, which is" if bound.endswith("%") else "; the objective is"
    return f"No {subject} is better by more than {bound}{share} {format_number(value)} here."


def domain(d: Domain) -> str:
    """The domain of a run in words."""
    return " plus ".join(map(_part, d.parts))


def _part(part: Part) -> str:
    if isinstance(part, Hull):
        return f"the convex hull of the atoms {part.A!r}"
    kind = "linear" if isinstance(part, Span) else "non-negative"
    cost = f", whose weights cost {format_number(part.price)} each unit" if part.price else ""
    return f"the {kind} combinations of the atoms {part.A!r}{cost}"


def failure_probability(d: Domain) -> float:
    """The probability that the bound of one oracle call is wrong; 0 where bounds are certain."""
    return max((0.0 if part.asked.exact else part.asked.failure for part in d.parts), default=0.0)


def footer() -> str:
    """The last line of a report."""
    return f"Written by pursuit {import_module('pursuit').__version__}. This file needs nothing else."
