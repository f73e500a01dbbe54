"""The report of the executable paper: the table and the figures as files, and all of it as one HTML page."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from html import escape
from pathlib import Path

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


def write(out: Path, rows: Sequence[Row], experiment: Section, seconds: float) -> Path:
    """Writes table.csv, an SVG file for each figure, and index.html; returns the path of the page."""
    out.mkdir(parents=True, exist_ok=True)
    with (out / "table.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["statement", "name", *(head.lower() for head in HEADS[1:])])
        table.writerows([row.claim.number, row.claim.name, *texts(row)] for row in rows)
    for figure in experiment.figures:
        (out / f"{figure.name}.svg").write_text(figure.svg, encoding="utf-8")
    path = out / "index.html"
    path.write_text(document(rows, experiment, seconds), encoding="utf-8")
    return path


def document(rows: Sequence[Row], experiment: Section, seconds: float) -> str:
    """The HTML page."""
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
        Table(HEADS, [cells(row) for row in rows]),
    )
    return page("The paper, executed", lead, [statements, experiment], f"Computed in {seconds:.0f} seconds.")


def texts(row: Row) -> list[str]:
    """The numbers of a row as text, for all columns but the first."""
    done, tried = row.equalities
    fails, printed = row.printed
    runs = bool(row.exact or row.adversarial)
    return [
        str(row.problems),
        str(row.exact) if runs else "",
        str(row.adversarial) if runs else "",
        worst_ratio(row),
        f"{done}/{tried}" if tried else "",
        f"{fails}/{printed}" if printed else "",
        row.verdict,
    ]


def worst_ratio(row: Row) -> str:
    """The worst ratio beside 1, or the error where there are equalities only."""
    if not row.sense:
        return f"1 ± {row.error:.0e}"
    fails = row.worst > 1 + ROUNDING_TOLERANCE if row.sense == "<=" else row.worst < 1 - ROUNDING_TOLERANCE
    sign = {"<=": "≤>", ">=": "≥<"}[row.sense][fails]
    return f"{row.worst:.3f} {sign} 1"


def cells(row: Row) -> list[Cell]:
    """A row of the page."""
    problems, exact, adversarial, ratio, equal, printed, verdict = texts(row)
    if equal:
        equal += f"<small>{f'error {row.error:.0e}' if row.error else 'exact'}</small>"
    title = (
        f"<b>{row.claim.number}</b>, {escape(row.claim.name)}"
        f'<span class="formula">{row.claim.formula}</span><small>{row.claim.note}</small>'
    )
    numbers = [Cell(text, "number") for text in (problems, exact, adversarial, ratio, equal, printed)]
    return [Cell(title), *numbers, Cell(f'<span class="{VERDICTS[verdict]}">{verdict}</span>')]
