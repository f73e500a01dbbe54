"""What the site has of its own: a reference made from `__all__`, links, formulas without scripts, figures."""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from docutils import nodes
from docutils.parsers.rst import states
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.nodes import make_refnode
from sphinx_gallery.scrapers import figure_rst

import pursuit

logger = logging.getLogger(__name__)

# ----------------------------------------------------------------------------------- the reference

SECTIONS = {  # of the names of `pursuit`: title, and the modules that define them
    "Solving": ("solve", "result", "paths"),
    "Many signals": ("coding", "dictionaries"),
    "Objectives": ("objectives", "stochastic"),
    "Sets of atoms": ("atoms",),
    "Domains": ("domains",),
    "Updates": ("updates",),
    "Steps": ("steps",),
    "Oracles": ("oracles",),
}
LAST = "Checks, files and parts of runs"
"""The section of all other names."""

SUBMODULES = {
    "Refinements": "pursuit.refine",
    "Estimators": "pursuit.estimators",
    "Families of atoms": "pursuit.atoms.families",
    "Geometry": "pursuit.geometry",
    "Rates": "pursuit.rates",
    "Figures": "pursuit.plots",
}


def public_names(module: ModuleType) -> list[str]:
    """The names in `__all__`; without it, what the module itself defines. Modules have pages of their own."""
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
    names = getattr(module, "__all__", [name for name in own if not name.startswith("_")])
    return [name for name in names if not inspect.ismodule(getattr(module, name))]


def pages() -> Iterator[tuple[str, str, str, list[str]]]:
    """Title, first sentence, module and names of each page of the reference."""
    section_of = {module: title for title, modules in SECTIONS.items() for module in modules}
    sections: dict[str, list[str]] = {title: [] for title in (*SECTIONS, LAST)}
    for name in public_names(pursuit):
        home = getattr(pursuit, name).__module__.split(".")[1]
        if f"pursuit.{home}" not in SUBMODULES.values():
            sections[section_of.get(home, LAST)].append(name)
    for title, names in sections.items():
        yield title, first_sentence(f"pursuit.{SECTIONS[title][0]}") if title in SECTIONS else "", "pursuit", names
    for title, path in SUBMODULES.items():
        yield title, first_sentence(path), path, public_names(importlib.import_module(path))


def first_sentence(module: str) -> str:
    """The first paragraph of the docstring of a module."""
    return (importlib.import_module(module).__doc__ or "").split("\n\n")[0]


PAGE = """{title}
{line}

{text}

.. currentmodule:: {module}

.. autosummary::
   :toctree: names

   {names}
"""

INDEX = """Reference
=========

Every public name, with an example that the tests run.

.. rst-class:: names

.. toctree::
   :maxdepth: 2

   {pages}
"""


def write_reference(app: Sphinx, config: Any) -> None:
    """One page per section, with a table that autosummary makes into one page per name."""
    folder = Path(app.srcdir, "reference")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    files = []
    for title, text, module, names in pages():
        entries = "\n   ".join(sorted(names, key=str.lower))
        page = PAGE.format(title=title, line="=" * len(title), text=text, module=module, names=entries)
        files.append(title.lower().replace(",", "").replace(" ", "_"))
        (folder / f"{files[-1]}.rst").write_text(page)
    (folder / "index.rst").write_text(INDEX.format(pages="\n   ".join(files)))


def skip_what_is_not_ours(app: Sphinx, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Leave out methods that other packages define."""
    function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
    home = getattr(inspect.unwrap(function) if callable(function) else function, "__module__", None) or "pursuit"
    return True if not home.startswith("pursuit") else None


def plain_text(self: states.Inliner, match: re.Match[str], lineno: int) -> tuple[str, list[Any], str, list[Any]]:
    """Our docstrings write norms as ||x|| and attributes as coef_: a bar is a bar, and a last _ belongs to a name."""
    end = match.end("start" if match["start"] else "whole")
    return match.string[:end], [], match.string[end:], []


class LinkNames(SphinxPostTransform):
    """`name`, `ps.name` or `name(...)` in a text becomes a link to the page of that name."""

    default_priority = 400
    PREFIXES = ("pursuit.", "pursuit.estimators.", "pursuit.refine.")
    PARAMETERS = ("path", "penalty", "refine")  # names that are more often those of a parameter

    def run(self, **options: Any) -> None:
        objects = self.env.domains.python_domain.objects
        for literal in list(self.document.findall(nodes.literal)):
            found = re.fullmatch(r"(?:ps\.|pursuit\.)?([A-Za-z][\w.]*)(?:\(.*\))?", literal.astext())
            parent = literal.parent
            if not found or literal.astext() in self.PARAMETERS or isinstance(parent, nodes.reference | nodes.title):
                continue
            full = next((p + found[1] for p in self.PREFIXES if p + found[1] in objects), None)
            if full is None or objects[full].docname == self.env.docname:
                continue
            entry = objects[full]
            link = make_refnode(self.app.builder, self.env.docname, entry.docname, entry.node_id, literal.copy(), full)
            link[0] += [child.deepcopy() for child in literal.children]
            parent.replace(literal, link)


# ---------------------------------------------------------------------------------------- formulas


def mathml(tex: str, display: Literal["inline", "block"]) -> str:
    """TeX as MathML, which browsers show without scripts and fonts of ours."""
    formula = convert(re.sub(r"\\arg\b", r"\\operatorname{arg}", tex), display=display)
    if "\\" in formula:
        logger.warning("latex2mathml does not know a command of %s", tex)
    return formula


def visit_math(self: Any, node: nodes.math) -> None:
    """A formula in a line."""
    self.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def visit_math_block(self: Any, node: nodes.math_block) -> None:
    """A formula on a line of its own, which scrolls where it is wider than the screen."""
    self.body.append(f'<div class="formula">{mathml(node.astext(), "block")}</div>\n')
    raise nodes.SkipNode


# ---------------------------------------------------------------------------------------- examples


def figures_written(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """The pictures that an example wrote under out/, moved to the gallery."""
    paths = []
    for picture in sorted(Path("out").glob("**/*.png")):
        paths.append(next(block_vars["image_path_iterator"]))
        shutil.move(picture, paths[-1])
    return figure_rst(paths, gallery_conf["src_dir"])


def before_an_example(gallery_conf: dict[str, Any], example: str) -> None:
    """Define `__file__`, by which examples find their data and which sphinx-gallery leaves out; remove old pictures."""
    builtins.__file__ = example  # type: ignore[attr-defined]
    for picture in Path(example).parent.glob("out/**/*.png"):
        picture.unlink()


def take_markdown_for_no_gallery(app: Sphinx, config: Any) -> None:
    """A README.md under examples/ is for readers of the repository; galleries have a GALLERY_HEADER.rst."""
    config.sphinx_gallery_conf["source_suffix"] = {".rst": "restructuredtext"}


def title_examples(app: Sphinx, docname: str, content: list[str]) -> None:
    """The first line of an example's docstring, "title: what it shows.", becomes a heading and a sentence."""

    def head(found: re.Match[str]) -> str:
        title, _, shown = found[2].partition(": ")
        title = title.removesuffix(".")
        return f"{found[1]}{title}\n{'=' * len(title)}\n\n{shown[:1].upper()}{shown[1:]}\n"

    if docname.startswith("gallery/") and docname != "gallery/index":
        content[0] = re.sub(r"(\.\. _sphx_glr_gallery_\S+:\n\n+)(.+)\n(?!=)", head, content[0], count=1)


def adapt_markdown(app: Sphinx, docname: str, content: list[str]) -> None:
    """Links to Markdown beside docs/: the examples are the gallery, other files are offered as they are. Blocks of code
    lose the empty line at their end, which doctest needs."""
    content[0] = re.sub(r"(^ *```python\n.*?\n)\n( *```)", r"\1\2", content[0], flags=re.DOTALL | re.MULTILINE)
    content[0] = content[0].replace("](../examples/README.md)", "](gallery/index.rst)")
    content[0] = re.sub(r"\]\((\.\./[\w/]+\.md)\)", r"](path:\1)", content[0])


PLACE = re.compile(r'(\[[^\]]*\])\(\.\./((?:src|tests)/[\w/]+\.py) "([\w.]+)"\)')
"""A link to a file of the repository whose title is a name in it: [text](../src/file.py "Class.method")."""


def line_of(file: Path, name: str) -> int:
    """The line at which a class, function or method is defined."""
    body: list[ast.stmt] = ast.parse(file.read_text(encoding="utf-8")).body
    line = 0
    for part in name.split("."):
        kinds = ast.ClassDef | ast.FunctionDef
        found = next((node for node in body if isinstance(node, kinds) and node.name == part), None)
        if found is None:
            raise LookupError(f"{file} defines no {name}")
        body, line = found.body, found.lineno
    return line


def number_lines(app: Sphinx, docname: str, content: list[str]) -> None:
    """Links with the name of a definition get its file and line, and lead to the file."""

    def place(link: re.Match[str]) -> str:
        line = line_of(Path(app.srcdir).parent / link[2], link[3])
        return f"{link[1]}(path:../{link[2]}) <small>{link[2].removeprefix('src/pursuit/')}:{line}</small>"

    content[0] = PLACE.sub(place, content[0])


def setup(app: Sphinx) -> dict[str, bool]:
    states.Inliner.dispatch |= {"|": plain_text, "_": plain_text}
    app.connect("config-inited", write_reference)
    app.connect("config-inited", take_markdown_for_no_gallery)
    app.connect("autodoc-skip-member", skip_what_is_not_ours)
    app.connect("source-read", title_examples)
    app.connect("source-read", adapt_markdown)
    app.connect("source-read", number_lines)
    app.add_post_transform(LinkNames)
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
