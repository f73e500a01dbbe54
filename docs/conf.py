"""The documentation site, `make docs`: Sphinx reads this file. `_site.py` beside it has what is our own."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # for _site

import pursuit

project = "pursuit"
version = release = pursuit.__version__
author = "The pursuit developers"
project_copyright = author
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "_site",
]
exclude_patterns = ["_templates", "gallery/**/*.py", "gallery/**/*.ipynb"]
templates_path = ["_templates"]
nitpicky = True
nitpick_ignore = [  # kinds of frames: internals that a class attribute names
    ("py:class", "pursuit.atoms.frames.DenseFrame"),
    ("py:class", "pursuit.atoms.sparse.SparseFrame"),
]
default_role = "literal"  # `name` in a docstring; names of the package become links

# Markdown as GitHub shows it, with formulas
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

# The reference
autodoc_typehints = "none"  # the docstrings say what arguments are, in words
autodoc_member_order = "bysource"
autosummary_generate_overwrite = True
autosummary_filename_map = {"pursuit.Path": "pursuit.Path-class"}  # `path` is another page, also where case is ignored
numpydoc_show_class_members = False

# The examples, run
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "image_scrapers": ("_site.figures_written",),
    "reset_modules": ("matplotlib", "_site.before_an_example"),
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "reference_url": {"pursuit": None},
    "doc_module": ("pursuit",),
    "backreferences_dir": "gallery/uses",
}

# The pages
html_theme = "furo"
html_title = "pursuit"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_show_search_summary = False  # excerpts of found pages cannot be fetched without a server
html_copy_source = False
html_math_renderer = "mathml"
pygments_style = "friendly"
pygments_dark_style = "a11y-dark"
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1b5e9b", "color-brand-content": "#1b5e9b"},
    "dark_css_variables": {"color-brand-primary": "#7fb8ea", "color-brand-content": "#7fb8ea"},
}
