"""The documentation: every public name has an example, links lead somewhere, and every page has code that runs."""

import ast
import importlib
import re
import runpy
from pathlib import Path

import pytest

import pursuit as ps

ROOT = Path(__file__).parent.parent
MODULES = ("pursuit", "pursuit.estimators", "pursuit.geometry", "pursuit.plots", "pursuit.rates", "pursuit.refine")


def public():
    """Every public name, with its object."""
    for path in (*MODULES, ps.families.__name__):
        module = importlib.import_module(path)
        own = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == path]
        for name in getattr(module, "__all__", [name for name in own if not name.startswith("_")]):
            yield f"{path}.{name}", getattr(module, name)


@pytest.mark.parametrize("name", PUBLIC := dict(public()))
def test_every_public_name_has_an_example(name):
    assert ">>> " in (PUBLIC[name].__doc__ or ""), f"{name} has no example; write one into its docstring."


PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "examples" / "README.md"])


def without_code(text):
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^\s*```.*?^\s*```", "", text, flags=re.DOTALL | re.MULTILINE))


def anchor(heading):
    """The anchor of a heading, as GitHub and MyST make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower().strip()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_to_a_file_and_a_heading(page):
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text())):
        path, _, fragment = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        file = (page.parent / path).resolve() if path else page
        headings = re.findall(r"^#+ (.+)$", file.read_text(), flags=re.MULTILINE) if fragment and file.is_file() else []
        built = path.startswith(("gallery/", "reference/")) and page.name == "index.md"  # made with the site
        if not (file.exists() or built) or (fragment and fragment not in map(anchor, headings)):
            broken.append(target)
    assert broken == []


NAMED = re.compile(r'\]\(\.\./([\w/]+\.py) "([\w.]+)"\)')


def defined(file, name):
    """Whether a file defines this class, function or method."""
    body = ast.parse((ROOT / file).read_text()).body
    for part in name.split("."):
        kinds = ast.ClassDef | ast.FunctionDef
        found = [node for node in body if isinstance(node, kinds) and node.name == part]
        if not found:
            return False
        body = found[0].body
    return True


def test_every_name_of_the_paper_in_code_is_there():
    """The site adds the line of each to its link; here it must exist."""
    places = NAMED.findall((ROOT / "docs" / "paper.md").read_text())
    assert len(places) > 60
    assert [place for place in places if not defined(*place)] == []
    assert not defined("src/pursuit/solve.py", "no_such_name")


def test_the_paper_in_code_has_every_number_of_the_paper():
    text = (ROOT / "docs" / "paper.md").read_text()
    numbers = [f"Theorem {n}" for n in (1, 2, 7, 8, 10, 11, 12, 13, 14)] + [
        "Corollary 4",
        "Corollary 9",
        "Lemma 15, 16",
    ]
    numbers += ["Lemma 17, 18", "Definition 3", "Definition 5", "Definition 6", "Figure 1"]
    numbers += [f"Algorithm {n}" for n in (1, 2, 4, 5, 6)] + ["3, variant 0", "Algorithm 3, variant 1"]
    assert [number for number in numbers if f"| {number}" not in text and number not in text] == []
    from pursuit.paper import CLAIMS

    absent = {c.check.__name__ for c in CLAIMS} - set(re.findall(r'"([\w.]+)"', text))
    later = {"acceleration", "additive_errors", "atomic_norm", "away_steps", "backtracking", "blended_pairwise"}
    later |= {"cone_pursuit", "equation_rho", "lazy_oracle", "oracle_qualities", "pairwise_steps", "random_pursuit"}
    assert absent <= later | {"theorem_2_sharp", "theorem_8_sharp"}


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/*.md")), ids=lambda page: page.name)
def test_code_of_a_page_is_code_that_the_tests_run(page):
    """A block of Python begins with a prompt, and ends with an empty line, without which doctest would read on."""
    for block in re.findall(r"^ *```python\n(.*?)^ *```", page.read_text(), flags=re.DOTALL | re.MULTILINE):
        assert block.lstrip().startswith(">>> ")
        assert block.rstrip(" ").endswith("\n\n")


def test_every_page_is_in_the_table_of_contents():
    index = (ROOT / "docs" / "index.md").read_text()
    contents = " ".join(re.findall(r"```{toctree}\n(.*?)```", index, re.DOTALL)).split()
    assert {page.stem for page in ROOT.glob("docs/*.md")} - {"index"} <= set(contents)


@pytest.mark.parametrize("example", sorted(ROOT.glob("examples/*.py")), ids=lambda example: example.stem)
def test_the_first_line_of_an_example_is_a_title_and_a_text_follows(example):
    title, _, text = ast.get_docstring(ast.parse(example.read_text())).partition("\n\n")
    assert "\n" not in title
    assert text


SITE = {
    "index.html": '<a href="other.html#here">fine</a> <a href="https://example.org">fine</a> <img src="data:,">',
    "other.html": '<h1 id="here"></h1>',
}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", None),
        ('<a href="gone.html">', "gone.html, which is no file"),
        ('<a href="other.html#gone">', "other.html#gone, which has no such anchor"),
        ('<a href="#gone">', "#gone, which has no such anchor"),
        ('<script src="https://example.org/a.js"></script>', "loads https://example.org/a.js"),
        ('<link rel="stylesheet" href="//example.org/a.css">', "loads //example.org/a.css"),
    ],
)
def test_the_check_of_the_site_finds_links_that_lead_nowhere_and_requests_to_other_hosts(text, problem, tmp_path):
    for name, page in SITE.items():
        (tmp_path / name).write_text(page + text if name == "index.html" else page)
    found = runpy.run_path(str(ROOT / "tools" / "check_site.py"))["problems"](tmp_path)
    assert [line.endswith(problem) for line in found] == ([True] if problem else [])


def test_the_check_of_the_site_finds_requests_of_style_sheets(tmp_path):
    (tmp_path / "site.css").write_text("@import url('https://example.org/font.css');")
    found = runpy.run_path(str(ROOT / "tools" / "check_site.py"))["problems"](tmp_path)
    assert found == ["site.css loads https://example.org/font.css"]
