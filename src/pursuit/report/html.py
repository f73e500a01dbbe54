"""One HTML page from tables and figures: self-contained, light and dark, for a phone, a screen and paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files


@dataclass(frozen=True)
class Figure:
    """A drawing: its caption (HTML), and the text of an SVG file."""

    caption: str
    svg: str


@dataclass(frozen=True)
class Cell:
    """A cell of a table: HTML, and a CSS class."""

    html: str
    kind: str = ""


@dataclass(frozen=True)
class Table:
    """Column heads, rows of as many cells, and a CSS class, such as "narrow"."""

    heads: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    kind: str = ""


@dataclass(frozen=True)
class Section:
    """A heading, paragraphs (HTML), a table, figures, and a note (HTML) below them."""

    heading: str
    paragraphs: Sequence[str] = ()
    table: Table | None = None
    figures: Sequence[Figure] = ()
    note: str = ""


def bar_table(heads: Sequence[str], rows: Sequence[tuple[str, Sequence[str], float]]) -> Table:
    """A row for each name (HTML): numbers, and a bar for the last of them; the colour of the bar is its sign."""
    largest = max((abs(size) for *_, size in rows), default=0.0) or 1.0
    cells = []
    for name, numbers, size in rows:
        colour, width = "minus" if size < 0 else "plus", 100 * abs(size) / largest
        bar = Cell(f'<i class="{colour}" style="width:{width:.1f}%"></i>', "bar")
        cells.append([Cell(name), *(Cell(number, "number") for number in numbers), bar])
    return Table([*heads, ""], cells, "narrow")


def fact_table(facts: Sequence[tuple[str, str]]) -> Table:
    """Names and texts, in two columns without heads."""
    return Table(("", ""), [[Cell(escape(name), "fact"), Cell(escape(text))] for name, text in facts], "narrow")


def page(title: str, lead: str, sections: Sequence[Section], footer: str) -> str:
    """The page, which loads nothing from elsewhere: style and figures are part of it. `lead` and `footer` are HTML.

    >>> text = page("Two & two", "Is <b>four</b>.", [Section("Proof", ["Count."])], "End.")
    >>> "<h1>Two &amp; two</h1>" in text, "http" in text
    (True, False)
    """
    body = "\n".join(part for section in sections for part in _section(section))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>
{files("pursuit.report").joinpath("style.css").read_text(encoding="utf-8")}</style>
</head>
<body>
<h1>{escape(title)}</h1>
<p class="lead">{lead}</p>
{body}
<footer>{footer}</footer>
</body>
</html>
"""


def _section(section: Section) -> Iterator[str]:
    yield f"<section>\n<h2>{escape(section.heading)}</h2>"
    yield from (f"<p>{text}</p>" for text in section.paragraphs if text)
    if section.table is not None:
        yield _table(section.table)
    if section.figures:
        drawings = (f"<figure>{fig.svg}<figcaption>{fig.caption}</figcaption></figure>" for fig in section.figures)
        yield '<div class="grid">' + "\n".join(drawings) + "</div>"
    if section.note:
        yield f'<p class="note">{section.note}</p>'
    yield "</section>"


def _table(table: Table) -> str:
    kinds = [cell.kind for cell in table.rows[0]] if table.rows else [""] * len(table.heads)
    heads = "".join(f'<th scope="col" class="{k}">{escape(h)}</th>' for h, k in zip(table.heads, kinds, strict=True))
    cells = ["".join(f'<td class="{cell.kind}">{cell.html}</td>' for cell in row) for row in table.rows]
    rows = "\n".join(f"<tr>{row}</tr>" for row in [heads if any(table.heads) else "", *cells])
    return f'<div class="table"><table class="{table.kind}">\n{rows}\n</table></div>'
