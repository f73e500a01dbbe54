"""`pursuit paper`: the theorems, tried."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pursuit.cli.errors import option, switch, terminal_table
from pursuit.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from pursuit.paper import Row


def paper(
    out: Annotated[Path, option("FOLDER", "Where to write the page, index.html.")] = Path("out/paper"),
    quick: Annotated[bool, switch("--quick", "Fewer problems: seconds instead of a minute.")] = False,
    seed: Annotated[int, option("N", "Seed of the random problems.", min=0)] = 0,
) -> None:
    """Test every theorem of the paper on random problems, and write the results to one HTML page.

    Exits with status 1 if a bound was violated.
    """
    from rich.console import Console
    from tqdm.auto import tqdm

    from pursuit.paper import CLAIMS, Plan
    from pursuit.paper.document import document
    from pursuit.paper.experiments import draw
    from pursuit.report.figures import style
    from pursuit.threads import single_threaded_blas

    console, plan, began = Console(), Plan(4 if quick else 36, seed), time.perf_counter()
    with style(), single_threaded_blas:  # products are small, and threads would wait for each other
        rows = [claim.row(plan) for claim in tqdm(CLAIMS, "claims", leave=False, disable=None)]
        experiment = draw(plan)
    seconds = time.perf_counter() - began
    out.mkdir(parents=True, exist_ok=True)
    write_whole(document(rows, experiment, seconds), out / "index.html")
    console.print(_table(rows))
    console.print(
        "\ntried: problems. runs: with an exact oracle + with an adversary.\n"
        "worst: the measured/promised ratio that is closest to failing.\n"
        "equal: equality cases reproduced.\n"
        "corrected: holds as in docs/errata.md; as printed it has counterexamples."
    )
    console.print(f"\nwrote {out / 'index.html'}, {seconds:.0f} s", soft_wrap=True, highlight=False)
    if not all(row.holds for row in rows):
        raise typer.Exit(1)


def _table(rows: Sequence[Row]) -> Table:
    """The table for a terminal of 80 columns."""
    from pursuit.paper.document import worst_ratio

    colours = {"holds": "green", "corrected": "yellow", "VIOLATED": "bold red"}
    numbers = [(head, "right") for head in ("tried", "runs", "worst", "equal")]
    table = terminal_table(("statement", "left"), ("about", "left"), *numbers, ("verdict", "left"))
    table.padding = 0
    for row in rows:
        runs = f"{row.exact}+{row.adversarial}" if row.exact or row.adversarial else ""
        done, tried = row.equalities
        verdict = f"[{colours[row.verdict]}]{row.verdict}[/]"
        counts = str(row.problems), runs, worst_ratio(row), f"{done}/{tried}" if tried else ""
        table.add_row(row.claim.number, row.claim.name, *counts, verdict)
    return table
