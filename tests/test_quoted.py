"""Speeds on README and the pages have a row in benchmarks/QUOTED.md: what measured them, when, on which commit."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "benchmarks" / "QUOTED.md").read_text(encoding="utf-8")
ROWS = [re.split(r"(?<!\\)\|", line)[1:-1] for line in TEXT.splitlines() if re.match(r"\| (README|docs/)", line)]
PAGES = ["README.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md"))]
TABLES = ("| task | beside | times as long |", "| case | `encode` | SPAMS | scikit-learn |")


def quotes(page):
    return [row[1].strip().replace("\\|", "|") for row in ROWS if row[0].strip() == page]


def lines_with_a_speed(page):
    """Lines that name milliseconds, seconds or the script that measured a table, and the rows of tables of speed."""
    found, inside = [], False
    for line in (ROOT / page).read_text(encoding="utf-8").splitlines():
        inside = line.startswith("|") and (inside or line in TABLES)
        row = inside and line not in TABLES and not line.startswith("|---")
        if row or re.search(r"\d m?s\b|^(Measured with )?`(python )?benchmarks/\w+\.py", line):
            found.append(line)
    return found


@pytest.mark.parametrize("page", PAGES)
def test_every_speed_on_a_page_has_a_row(page):
    for line in lines_with_a_speed(page):
        assert any(quote in line for quote in quotes(page)), f"{page}: no row of benchmarks/QUOTED.md for: {line}"


@pytest.mark.parametrize("page", PAGES)
def test_every_row_is_on_its_page(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert [quote for quote in quotes(page) if quote not in text] == []


def test_every_row_has_a_date_and_a_commit():
    assert ROWS
    for row in ROWS:
        assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", row[3].strip()) and re.fullmatch(r"[0-9a-f]{7}", row[4].strip()), row
