"""One HTML page from tables and figures: self-contained, for a phone, a screen and paper."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Figure:
    """A PNG image: its file name without the suffix, its caption (HTML), and its bytes."""

    name: str
    caption: str
    png: bytes


@dataclass(frozen=True)
class Cell:
    """A cell of a table: HTML, and a CSS class."""

    html: str
    kind: str = ""


@dataclass(frozen=True)
class Table:
    """Column heads, and rows of as many cells. On a phone each row becomes a card, the first cell its title."""

    heads: Sequence[str]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True)
class Section:
    """A heading, paragraphs (HTML), a table and figures."""

    heading: str
    paragraphs: Sequence[str] = ()
    table: Table | None = None
    figures: Sequence[Figure] = ()


STYLE = """
:root { color-scheme: light; --ink: #1c2230; --soft: #5b6475; --line: #d9dee7; --pale: #f5f7fa; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 1.5rem 1.25rem 4rem; color: var(--ink); background: #fff;
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
  -webkit-text-size-adjust: 100%; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .5rem; text-wrap: balance; }
h2 { font-size: 1.25rem; line-height: 1.3; margin: 2.5rem 0 .5rem; }
p { max-width: 46rem; margin: .5rem 0; }
sub, sup { line-height: 0; font-size: .72em; }
.lead { font-size: 1.1rem; }
table { border-collapse: collapse; width: 100%; margin-top: 1rem; font-size: .9rem; }
th { text-align: left; vertical-align: bottom; font-weight: 600; color: var(--soft);
  font-size: .8rem; line-height: 1.25; }
th, td { padding: .55rem .6rem; border-bottom: 1px solid var(--line); }
td { vertical-align: top; }
th:first-child { width: 50%; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
th.number { text-align: right; }
td small { display: block; color: var(--soft); font-size: .78rem; line-height: 1.4; }
td .formula { display: block; margin: .15rem 0; }
.good, .fixed, .bad { display: inline-block; padding: 0 .5em; border-radius: 1em; font-size: .8rem; font-weight: 600; }
.good { background: #dff3e4; color: #14602b; }
.fixed { background: #fdf0d2; color: #7a4b00; }
.bad { background: #fbdcdc; color: #9c1212; }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 21rem), 1fr));
  gap: 1.25rem; margin-top: 1rem; }
figure { margin: 0; max-width: 34rem; }
figure img { width: 100%; height: auto; display: block; border: 1px solid var(--line); border-radius: 4px; }
figcaption { color: var(--soft); font-size: .85rem; line-height: 1.45; margin-top: .35rem; }
footer { margin-top: 3rem; color: var(--soft); font-size: .85rem; }
@media screen and (max-width: 50rem) {
  thead { display: none; }
  table, tbody { display: block; }
  tr { display: grid; grid-template-columns: 1fr 1fr; gap: .1rem 1rem; padding: .8rem; margin-bottom: .8rem;
    border: 1px solid var(--line); border-radius: 8px; background: var(--pale); }
  td, td.number { display: block; border: 0; padding: .2rem 0; text-align: left; white-space: normal; }
  td:first-child { grid-column: 1 / -1; }
  td[data-label]:not(:first-child)::before { content: attr(data-label); display: block; color: var(--soft);
    font-size: .75rem; line-height: 1.3; }
  td:empty { display: none; }
}
@media print {
  @page { margin: 14mm 12mm; }
  :root { font-size: 9.5pt; }
  body { max-width: none; padding: 0; }
  p { max-width: none; orphans: 3; widows: 3; }
  h2 { margin-top: 1.5rem; break-after: avoid; }
  th, td { padding: .3rem .4rem; }
  tr, figure, section:has(.grid) { break-inside: avoid; }
  footer { margin-top: 1rem; }
  .grid { grid-template-columns: repeat(auto-fit, minmax(55mm, 1fr)); gap: .8rem; }
  .good, .fixed, .bad { padding: 0; background: none; }
}
"""


def page(title: str, lead: str, sections: Sequence[Section], footer: str) -> str:
    """The page; `lead` and `footer` are HTML. It loads nothing from elsewhere: images are part of it.

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
<style>{STYLE}</style>
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
    yield from (f"<p>{text}</p>" for text in section.paragraphs)
    if section.table is not None:
        yield _table(section.table)
    if section.figures:
        yield '<div class="grid">' + "\n".join(map(_figure, section.figures)) + "</div>"
    yield "</section>"


def _table(table: Table) -> str:
    kinds = [cell.kind for cell in table.rows[0]] if table.rows else [""] * len(table.heads)
    head = "".join(f'<th scope="col" class="{kind}">{name}</th>' for name, kind in zip(table.heads, kinds, strict=True))
    rows = "\n".join("<tr>" + "".join(map(_cell, table.heads, row)) + "</tr>" for row in table.rows)
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>"


def _cell(head: str, cell: Cell) -> str:
    return f'<td class="{cell.kind}" data-label="{escape(head)}">{cell.html}</td>'


def _figure(figure: Figure) -> str:
    data = base64.b64encode(figure.png).decode("ascii")
    return (
        f'<figure><img alt="{escape(figure.name.replace("-", " "))}" src="data:image/png;base64,{data}">'
        f"<figcaption>{figure.caption}</figcaption></figure>"
    )
