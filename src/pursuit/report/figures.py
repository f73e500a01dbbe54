"""Axes to draw on, and SVG drawings of them for a page."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

from pursuit.report.html import Figure

BLUE, RED, GREEN, PURPLE, GREY = "#0072b2", "#d55e00", "#009e73", "#a8497a", "#777777"
"""Colours that colour-blind readers can tell apart, too."""

SETTINGS = {
    "font.size": 11.0,
    "axes.labelsize": 11.0,
    "axes.titlesize": 12.0,
    "legend.fontsize": 10.0,
    "legend.handlelength": 1.4,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.8,
    "text.parse_math": False,  # a name may have dollar signs
    "svg.fonttype": "none",  # text stays text, in the font of the page
}
COUNTS = ("atoms", "features", "iterations")
"""Labels of axes that count."""

NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


@contextmanager
def style() -> Iterator[None]:
    """Fonts, lines and colours of all drawings, whatever the user's settings of matplotlib are."""
    try:
        import matplotlib as mpl
        from cycler import cycler
    except ImportError as missing:
        raise ImportError("figures need matplotlib; pip install matplotlib.") from missing

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(SETTINGS)
        mpl.rcParams["axes.prop_cycle"] = cycler(color=[BLUE, RED, GREEN, PURPLE, "#b8860b", "#56b4e9", GREY])
        yield


class Panel:
    """Axes to draw on; `done` makes a drawing of them. Neither changes the windows of matplotlib."""

    def __init__(self, name: str, title: str, **labels: Any) -> None:
        from matplotlib.figure import Figure as Canvas

        self.name, self.title = name, title
        self.canvas = Canvas(figsize=(5.0, 3.7), layout="constrained")
        self.ax = self.canvas.add_subplot()
        self.ax.set(title=title, **labels)
        self.ax.grid(alpha=0.25)

    def done(self, caption: str) -> Figure:
        """The finished drawing."""
        import matplotlib as mpl
        from matplotlib.ticker import LogFormatter, MaxNLocator

        for axis in (axis for ax in self.canvas.axes for axis in (ax.xaxis, ax.yaxis)):
            if axis.get_scale() == "log":
                axis.set_major_formatter(LogFormatter())  # plain text: formulas need fonts of matplotlib
                axis.set_minor_formatter(LogFormatter())
            elif axis.get_label_text() in COUNTS:
                axis.set_major_locator(MaxNLocator(integer=True))
        if self.ax.get_legend_handles_labels()[1]:
            self.ax.legend()
        stream = io.StringIO()
        with mpl.rc_context({"svg.hashsalt": self.name}):  # identifiers differ from those of other drawings on a page
            self.canvas.savefig(stream, format="svg", transparent=True, metadata=NO_METADATA)
        svg = stream.getvalue()
        svg = re.sub('<g id="[^"]*"', "<g", svg[svg.index("<svg") :])  # nothing refers to those
        label = escape(self.title or self.name.replace("-", " "))
        return Figure(caption, svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1))
