"""The command `pursuit`."""

from __future__ import annotations

from typing import Annotated

try:
    import rich as _rich  # noqa: F401
    import typer
except ImportError as missing:
    raise ImportError("the command line needs typer and rich; pip install typer rich polars.") from missing

import pursuit
from pursuit.cli import doctor, fit, paper, predict, signals
from pursuit.cli.errors import Commands

app = typer.Typer(cls=Commands, add_completion=False, rich_markup_mode="markdown", pretty_exceptions_show_locals=False)
app.command()(fit.fit)
app.command()(predict.predict)
app.command()(signals.encode)
app.command()(signals.learn)
app.command()(paper.paper)
app.command()(doctor.doctor)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(pursuit.__version__)
        raise typer.Exit


@app.callback(invoke_without_command=True)
def main(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Matching pursuit and Frank-Wolfe as one algorithm: sparse combinations of atoms, with a certificate."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
