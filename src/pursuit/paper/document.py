"""The report of the executable paper: the table of all statements and the experiment, as one HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from pursuit.paper.claims import ROUNDING_TOLERANCE, Row
from pursuit.report.html import Cell, Section, Table, page

HEADS = (
    "Statement",
    "Problems",
    "Runs, exact oracle",
    "Runs, adversary",
    "Worst measured / promised",
    "Equality cases",
    "Printed wording fails",
    "Verdict",
)
VERDICTS = {"holds": "good", "corrected": "fixed", "VIOLATED": "bad"}
CITATION = (
    "F. Locatello, R. Khanna, M. Tschannen, M. Jaggi: <i>A Unified Optimization View on Generalized Matching Pursuit "
    "and Frank-Wolfe</i>, AISTATS 2017."
)


def document(rows: Sequence[Row], experiment: Section, seconds: float) -> str:
    """The page."""
    exact, adversarial = sum(row.exact for row in rows), sum(row.adversarial for row in rows)
    broken = [row.claim.number for row in rows if not row.holds]
    outcome = f"<b>Violated: {', '.join(broken)}.</b>" if broken else "Every bound held."
    lead = (
        f"Every theorem, corollary and lemma of the paper, and rates of later methods, tried: {len(rows)} statements, "
        f"{exact:,} runs with an exact oracle, {adversarial:,} with an adversary. {outcome}"
    )
    statements = Section(
        "The statements",
        [
            f"The paper is {CITATION} Its theorems, definitions, corollaries and lemmas share one counter. Rows named "
            "after a section or an equation are claims that it makes in passing; “sharp” rows are stronger forms. "
            "Below the appendix are rates of later methods, whose notes name their papers.",
            "An upper bound keeps its promise if measured / promised is at most 1, a lower bound if it is at least 1; "
            "the worst ratio is the one closest to failing. The adversary is an oracle that returns the worst atom its "
            "quality δ allows. Equality cases are problems on which a bound is attained, or identities that fix its "
            "constants, with the largest relative error. <b>Holds</b>: no comparison failed. <b>Corrected</b>: the "
            "same, for a corrected statement; the printed wording fails on as many counterexamples as the table says.",
        ],
        Table(HEADS, [_cells(row) for row in rows]),
    )
    return page("The paper, executed", lead, [statements, experiment], f"Computed in {seconds:.0f} seconds.")


def worst_ratio(row: Row) -> str:
    """The worst ratio beside 1, or the error where there are equalities only."""
    if not row.sense:
        return f"1 ± {row.error:.0e}"
    fails = row.worst > 1 + ROUNDING_TOLERANCE if row.sense == "<=" else row.worst < 1 - ROUNDING_TOLERANCE
    sign = {"<=": "≤>", ">=": "≥<"}[row.sense][fails]
    return f"{row.worst:.3f} {sign} 1"


def _cells(row: Row) -> list[Cell]:
    """A row of the table."""
    (done, tried), (fails, printed) = row.equalities, row.printed
    title = (
        f"<b>{row.claim.number}</b>, {escape(row.claim.name)}"
        f'<span class="formula">{row.claim.formula}</span><small>{row.claim.note}</small>'
    )
    runs = (row.exact, row.adversarial) if row.exact or row.adversarial else ("", "")
    error = f"<small>{f'error {row.error:.0e}' if row.error else 'exact'}</small>"
    equal = f"{done}/{tried}{error}" if tried else ""
    numbers = (row.problems, *runs, worst_ratio(row), equal, f"{fails}/{printed}" if printed else "")
    verdict = f'<span class="{VERDICTS[row.verdict]}">{row.verdict}</span>'
    return [Cell(title), *(Cell(str(number), "number") for number in numbers), Cell(verdict)]
