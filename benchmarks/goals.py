"""What the package sets itself: how many times as fast one contender must be as another, in one run."""

from __future__ import annotations

from common import Row

OURS, ENCODE, OLS = "pursuit", "pursuit encode", "pursuit encode, ols"
SKLEARN, SPAMS = "scikit-learn", "SPAMS"
GOALS = [
    ("a50", SKLEARN, ENCODE, 4.0), ("a50", SPAMS, ENCODE, 3.0),
    ("a200", SKLEARN, ENCODE, 4.0), ("a200", SPAMS, ENCODE, 3.0),
    ("a50", SPAMS, OLS, 3.0), ("a200", SPAMS, OLS, 3.0),
    ("d", SKLEARN, ENCODE, 4.5),
    ("gram", "scikit-learn, precompute=True", ENCODE, 100.0),
    ("gram", "scikit-learn orthogonal_mp_gram", ENCODE, 100.0),
    ("call", "pursuit, Exact()", "pursuit, screened", 3.5), ("heavy", "pursuit, Exact()", "pursuit, screened", 1.2),
    ("b", SKLEARN, ENCODE, 200.0), ("b", SPAMS, ENCODE, 5.0), ("b", ENCODE, "pursuit encode, float32", 1.5),
    ("c", SKLEARN, ENCODE, 80.0), ("c", SPAMS, ENCODE, 4.5), ("c", ENCODE, "pursuit encode, float32", 1.5),
    ("b", SKLEARN, "pursuit encode, Gram given", 100.0), ("b", SPAMS, OLS, 4.0), ("c", SPAMS, OLS, 4.0),
    ("l1", SKLEARN, OURS, 1.0), ("l1", SKLEARN, "pursuit, certified", 1 / 3),
    ("logistic", "celer", OURS, 1 / 1.5),
]  # fmt: skip
"""(case, slower, faster, how many times): contenders by the beginning of their names."""
THREADS = [("b", ENCODE, 1.4), ("c", ENCODE, 1.4)]
"""(case, contender, how many times as fast with two threads as with one)."""


def seconds(rows: list[Row], case: str, name: str, threads: int) -> float | None:
    """The time of the contender of this name, or else of the first whose name begins so."""
    mine = [row for row in rows if row.case == case and row.threads == threads]
    exact = [row for row in mine if row.contender == name] or [row for row in mine if row.contender.startswith(name)]
    return exact[0].seconds if exact else None


def goals(rows: list[Row]) -> list[tuple[str, float, float]]:
    """(what, ratio, goal) for all that were measured."""
    found = []
    for case, slow, fast, goal in GOALS:
        for threads in sorted({row.threads for row in rows}):
            one, two = seconds(rows, case, slow, threads), seconds(rows, case, fast, threads)
            if one and two:
                found.append((f"{case}: {slow} / {fast}, {threads} thread{'s' * (threads > 1)}", one / two, goal))
    for case, name, goal in THREADS:
        one, two = seconds(rows, case, name, 1), seconds(rows, case, name, 2)
        if one and two:
            found.append((f"{case}: {name}, 1 thread / 2 threads", one / two, goal))
    return found
