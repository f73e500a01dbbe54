"""What the site has of its own: a reference made from `__all__`, links, formulas without scripts, figures."""

from __future__ import annotations

import builtins
import importlib
import inspect
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from docutils import nodes
from docutils.parsers.rst import states
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode
from sphinx_gallery.scrapers import figure_rst

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
    import pursuit

    section_of = {module: title for title, modules in SECTIONS.items() for module in modules}
    sections: dict[str, list[str]] = {title: [] for title in (*SECTIONS, LAST)}
    for name in public_names(pursuit):
        home = getattr(getattr(pursuit, name), "__module__", "").split(".")
        sections[section_of.get(home[1] if home[0] == "pursuit" else "", LAST)].append(name)
    for title, names in sections.items():
        yield title, "", "pursuit", names
    for title, path in SUBMODULES.items():
        module = importlib.import_module(path)
        names = [name for name in public_names(module) if getattr(pursuit, name, None) is not getattr(module, name)]
        yield title, (module.__doc__ or "").split("\n\n")[0], path, names


def write_reference(app: Sphinx, config: Any) -> None:
    """One page per section, with a table that autosummary makes into one page per name."""
    folder = Path(app.srcdir, "reference")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    files = []
    for title, text, module, names in pages():
        lines = [title, "=" * len(title), "", text, "", f".. currentmodule:: {module}", ""]
        lines += [
            ".. autosummary::",
            "   :toctree: names",
            "",
            *(f"   {name}" for name in sorted(names, key=str.lower)),
        ]
        files.append(title.lower().replace(",", "").replace(" ", "_"))
        (folder / f"{files[-1]}.rst").write_text("\n".join(lines) + "\n")
    entries = "\n".join(f"   {name}" for name in files)
    head = "Reference\n=========\n\nEvery public name, with an example that the tests run.\n\n"
    (folder / "index.rst").write_text(f"{head}.. toctree::\n   :maxdepth: 2\n\n{entries}\n")


def skip_what_is_not_ours(app: Sphinx, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Leave out methods that other packages define."""
    function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
    home = getattr(inspect.unwrap(function) if callable(function) else function, "__module__", None) or "pursuit"
    return True if not home.startswith("pursuit") else None


def a_bar_is_a_bar(self: states.Inliner, match: re.Match[str], lineno: int) -> tuple[str, list[Any], str, list[Any]]:
    """Our docstrings write norms as ||x||, and substitutions nowhere."""
    end = match.end("start")
    return match.string[:end], [], match.string[end:], []


class LinkNames(SphinxPostTransform):
    """`name`, `ps.name` or `name(...)` in a text becomes a link to the page of that name."""

    default_priority = 400
    PREFIXES = ("pursuit.", "pursuit.estimators.", "pursuit.refine.")

    def run(self, **options: Any) -> None:
        objects = self.env.domains.python_domain.objects
        for literal in list(self.document.findall(nodes.literal)):
            found = re.fullmatch(r"(?:ps\.|pursuit\.)?([A-Za-z][\w.]*)(?:\(.*\))?", literal.astext())
            parent = literal.parent
            if not found or isinstance(parent, nodes.reference | nodes.title):
                continue
            full = next((p + found[1] for p in self.PREFIXES if p + found[1] in objects), None)
            if full is None or objects[full].docname == self.env.docname:
                continue
            entry = objects[full]
            link = make_refnode(self.app.builder, self.env.docname, entry.docname, entry.node_id, literal.copy(), full)
            link[0] += [child.deepcopy() for child in literal.children]
            parent.replace(literal, link)


# ---------------------------------------------------------------------------------------- formulas


def visit_math(self: Any, node: nodes.math) -> None:
    """TeX becomes MathML, which browsers show without scripts and fonts of ours."""
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def visit_math_block(self: Any, node: nodes.math_block) -> None:
    """A formula on a line of its own, which scrolls where it is wider than the screen."""
    self.body.append(f'<div class="formula">{convert(node.astext(), display="block")}</div>\n')
    raise nodes.SkipNode


# ---------------------------------------------------------------------------------------- examples


def figures_written(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """The pictures that an example wrote under out/, moved to the gallery."""
    paths = []
    for picture in sorted(Path("out").glob("**/*.png")):
        paths.append(next(block_vars["image_path_iterator"]))
        shutil.move(picture, paths[-1])
    return figure_rst(paths, gallery_conf["src_dir"])


def say_where_the_example_is(gallery_conf: dict[str, Any], example: str) -> None:
    """Define `__file__`, by which examples find their data and which sphinx-gallery leaves out."""
    builtins.__file__ = example  # type: ignore[attr-defined]


def title_examples(app: Sphinx, docname: str, content: list[str]) -> None:
    """The first line of an example's docstring is the title of its page."""
    if docname.startswith("gallery/") and docname != "gallery/index":
        content[0] = re.sub(
            r"(\.\. _sphx_glr_gallery_\S+:\n\n+)(.+?)\.?\n(?![=\-~])",
            lambda m: f"{m[1]}{m[2]}\n{'=' * len(m[2])}\n",
            content[0],
            count=1,
        )


def lead_to_the_site(app: Sphinx, docname: str, content: list[str]) -> None:
    """Links of our pages to Markdown beside docs/: the examples are the gallery, other files are offered as they are."""
    content[0] = content[0].replace("](../examples/README.md)", "](gallery/index.rst)")
    content[0] = re.sub(r"\]\((\.\./[\w/]+\.md)\)", r"](path:\1)", content[0])


def setup(app: Sphinx) -> dict[str, bool]:
    states.Inliner.dispatch["|"] = a_bar_is_a_bar
    app.connect("config-inited", write_reference)
    app.connect("autodoc-skip-member", skip_what_is_not_ours)
    app.connect("source-read", title_examples)
    app.connect("source-read", lead_to_the_site)
    app.add_post_transform(LinkNames)
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
