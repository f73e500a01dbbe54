"""One HTML page from tables and figures: self-contained, light and dark, for a phone, a screen and paper."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Figure:
    """A drawing: its file name without the suffix, its caption (HTML), and the text of an SVG file.

    Its colours are `currentColor` and the variables of `STYLE`, so that it suits light and dark pages.
    """

    name: str
    caption: str
    svg: str


@dataclass(frozen=True)
class Cell:
    """A cell of a table: HTML, and a CSS class."""

    html: str
    kind: str = ""


@dataclass(frozen=True)
class Table:
    """Column heads, and rows of as many cells.

    On a phone each row becomes a card, the first cell its title; a table that is `narrow` stays a table there.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    narrow: bool = False


@dataclass(frozen=True)
class Section:
    """A heading, paragraphs (HTML), a table, figures, and a note (HTML) below them."""

    heading: str
    paragraphs: Sequence[str] = ()
    table: Table | None = None
    figures: Sequence[Figure] = ()
    note: str = ""


@dataclass(frozen=True)
class Tile:
    """A number that is shown large at the top of a page, and what it is; both are HTML."""

    number: str
    meaning: str


STYLE = """
:root { color-scheme: light dark; --ink: #1c2230; --soft: #5b6475; --line: #d9dee7; --pale: #f5f7fa; --ground: #fff;
  --blue: #0072b2; --red: #d55e00; --green: #009e73; --purple: #a8497a;
  --good: #14602b; --good-ground: #dff3e4; --fixed: #7a4b00; --fixed-ground: #fdf0d2;
  --bad: #9c1212; --bad-ground: #fbdcdc; }
@media screen and (prefers-color-scheme: dark) {
  :root { --ink: #e4e8ef; --soft: #a3adbd; --line: #333b48; --pale: #1c222b; --ground: #13171d;
    --blue: #5cb3e8; --red: #f0894a; --green: #3cc79b; --purple: #d98bb4;
    --good: #8fdcaa; --good-ground: #173523; --fixed: #f0c674; --fixed-ground: #3a2d10;
    --bad: #f5a3a3; --bad-ground: #451a1a; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 1.5rem 1.25rem 4rem; color: var(--ink); background: var(--ground);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
  -webkit-text-size-adjust: 100%; overflow-wrap: break-word; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .5rem; text-wrap: balance; }
h2 { font-size: 1.25rem; line-height: 1.3; margin: 2.5rem 0 .5rem; }
p { max-width: 46rem; margin: .5rem 0; }
code { font-size: .9em; overflow-wrap: anywhere; }
sub, sup { line-height: 0; font-size: .72em; }
.lead { font-size: 1.1rem; }
.note { color: var(--soft); font-size: .85rem; }
.tiles { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.25rem 0 0; max-width: 60rem; }
.tiles div { flex: 1 1 auto; min-width: 9rem;
  background: var(--pale); border: 1px solid var(--line); border-radius: 8px; padding: .6rem .9rem .7rem; }
.tiles b { display: block; white-space: nowrap; font-size: 1.4rem; line-height: 1.3;
  font-weight: 650; font-variant-numeric: tabular-nums; }
.tiles span { display: block; color: var(--soft); font-size: .8rem; line-height: 1.35; }
table { border-collapse: collapse; width: 100%; margin-top: 1rem; font-size: .9rem; }
th { text-align: left; vertical-align: bottom; font-weight: 600; color: var(--soft);
  font-size: .8rem; line-height: 1.25; }
th, td { padding: .55rem .6rem; border-bottom: 1px solid var(--line); }
td { vertical-align: top; }
table.narrow td { overflow-wrap: anywhere; }
th:first-child { width: 50%; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
th.number { text-align: right; }
td small { display: block; color: var(--soft); font-size: .78rem; line-height: 1.4; }
td .formula { display: block; margin: .15rem 0; }
table.narrow { width: auto; min-width: min(100%, 34rem); max-width: 100%; }
table.narrow th, table.narrow td { padding: .3rem .7rem; }
table.narrow th:first-child { width: auto; }
table.narrow th:first-child, table.narrow td:first-child { padding-left: 0; }
table.narrow tr > :last-child { padding-right: 0; }
table.narrow td.fact { color: var(--soft); white-space: nowrap; overflow-wrap: normal; padding-right: 1.2rem; }
td.bar, th.bar { width: 38%; min-width: 5rem; }
td.bar { vertical-align: middle; }
td.bar i { display: block; height: .7rem; min-width: 1px; border-radius: 2px; background: var(--blue); }
td.bar i.minus { background: var(--red); }
.tone { display: inline-block; min-width: 4.2em; padding: 0 .4em; border-radius: 3px;
  background: color-mix(in srgb, var(--tone) var(--share), transparent); }
.good, .fixed, .bad { display: inline-block; padding: 0 .5em; border-radius: 1em; font-size: .8rem; font-weight: 600;
  white-space: nowrap; }
.good { background: var(--good-ground); color: var(--good); }
.fixed { background: var(--fixed-ground); color: var(--fixed); }
.bad { background: var(--bad-ground); color: var(--bad); }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 21rem), 1fr));
  gap: 1.5rem 1.25rem; margin-top: 1rem; }
figure { margin: 0; max-width: 32rem; min-width: 0; }
figure svg { width: 100%; height: auto; display: block; }
figcaption { color: var(--soft); font-size: .85rem; line-height: 1.45; margin-top: .35rem; }
footer { margin-top: 3rem; color: var(--soft); font-size: .85rem; }
@media screen and (max-width: 50rem) {
  table:not(.narrow) thead { display: none; }
  table:not(.narrow), table:not(.narrow) tbody { display: block; }
  table:not(.narrow) tr { display: grid; grid-template-columns: 1fr 1fr; gap: .1rem 1rem; padding: .8rem;
    margin-bottom: .8rem; border: 1px solid var(--line); border-radius: 8px; background: var(--pale); }
  table:not(.narrow) td { display: block; border: 0; padding: .2rem 0; text-align: left; white-space: normal; }
  table:not(.narrow) td:first-child { grid-column: 1 / -1; }
  table:not(.narrow) td[data-label]:not(:first-child)::before { content: attr(data-label); display: block;
    color: var(--soft); font-size: .75rem; line-height: 1.3; }
  table:not(.narrow) td:empty { display: none; }
  table.narrow { width: 100%; min-width: 0; }
  table.narrow:has(td.bar), table.narrow:has(td.bar) :is(thead, tbody) { display: block; }
  table.narrow:has(td.bar) tr { display: flex; flex-wrap: wrap; border-bottom: 1px solid var(--line);
    padding: .25rem 0; }
  table.narrow:has(td.bar) :is(th, td) { flex: 0 0 auto; min-width: 5.3rem; border: 0; padding: .1rem 0 .1rem .5rem; }
  table.narrow:has(td.bar) :is(th, td):first-child { flex: 1 1 0; min-width: 0; padding-left: 0; }
  table.narrow:has(td.bar) td.bar { flex: 1 0 100%; padding: .1rem 0 .2rem; }
  table.narrow:has(td.bar) th.bar { display: none; }
  .tiles div { flex: 1 1 40%; min-width: min-content; }
  table.narrow th, table.narrow td { padding: .3rem .35rem; }
}
@media print {
  @page { margin: 14mm 12mm; }
  :root { font-size: 9.5pt; }
  body { max-width: none; padding: 0; }
  p { max-width: none; orphans: 3; widows: 3; }
  h2 { margin-top: 1.5rem; break-after: avoid; }
  th, td { padding: .3rem .4rem; }
  tr, figure, .tiles, section:has(.grid) { break-inside: avoid; }
  footer { margin-top: 1rem; break-before: avoid; }
  .grid { grid-template-columns: repeat(auto-fit, minmax(55mm, 1fr)); gap: .8rem; }
  .good, .fixed, .bad { padding: 0; background: none; }
  td.bar i, .tone { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""


def page(title: str, lead: str, sections: Sequence[Section], footer: str, tiles: Sequence[Tile] = ()) -> str:
    """The page; `lead` and `footer` are HTML. It loads nothing from elsewhere: figures are part of it.

    >>> text = page("Two & two", "Is <b>four</b>.", [Section("Proof", ["Count."])], "End.")
    >>> "<h1>Two &amp; two</h1>" in text, "http" in text
    (True, False)
    """
    top = "".join(f"<div><b>{tile.number}</b><span>{tile.meaning}</span></div>" for tile in tiles)
    top = f'<div class="tiles">{top}</div>\n' if tiles else ""
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
{top}{body}
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
    if section.note:
        yield f'<p class="note">{section.note}</p>'
    yield "</section>"


def _table(table: Table) -> str:
    kinds = [cell.kind for cell in table.rows[0]] if table.rows else [""] * len(table.heads)
    head = "".join(
        f'<th scope="col" class="{kind}">{escape(name)}</th>' for name, kind in zip(table.heads, kinds, strict=True)
    )
    head = f"<thead><tr>{head}</tr></thead>\n" if any(table.heads) else ""
    rows = "\n".join("<tr>" + "".join(map(_cell, table.heads, row)) + "</tr>" for row in table.rows)
    kind = ' class="narrow"' if table.narrow else ""
    return f"<table{kind}>\n{head}<tbody>\n{rows}\n</tbody>\n</table>"


def _cell(head: str, cell: Cell) -> str:
    return f'<td class="{cell.kind}" data-label="{escape(head)}">{cell.html}</td>'


def _figure(figure: Figure) -> str:
    drawing = re.sub(r' xmlns(:\w+)?="[^"]*"| (width|height)="[\d.]+pt"', "", figure.svg)  # HTML needs no name spaces
    return f"<figure>{drawing}<figcaption>{figure.caption}</figcaption></figure>"
