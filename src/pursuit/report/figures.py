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

LEGEND_CHARACTERS = 60
"""Names side by side below a figure have at most this many characters; a line before a name takes five."""

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
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

    def done(self, caption: str, legend_below: bool = False) -> Figure:
        """The finished drawing, its legend inside the axes or below them."""
        import matplotlib as mpl

        for ax in self.canvas.axes:
            _label_ticks(ax.xaxis)
            _label_ticks(ax.yaxis)
        names = self.ax.get_legend_handles_labels()[1]
        if names and not legend_below:
            self.ax.legend()
        elif names:
            if (legend := self.ax.get_legend()) is not None:
                legend.remove()
            columns = max(1, min(3, LEGEND_CHARACTERS // (max(map(len, names)) + 5)))
            self.canvas.legend(loc="outside lower center", ncols=columns, columnspacing=1.0)
        stream = io.StringIO()
        with mpl.rc_context({"svg.hashsalt": self.name}):  # identifiers differ from those of other drawings on a page
            self.canvas.savefig(stream, format="svg", transparent=True, metadata=NO_METADATA)
        svg = stream.getvalue()
        svg = re.sub('<g id="[^"]*"', "<g", svg[svg.index("<svg") :])  # nothing refers to those
        label = escape(self.title or self.name.replace("-", " "))
        return Figure(self.name, caption, svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1))


def _label_ticks(axis: Any) -> None:
    """Whole numbers for counts; powers of ten as plain text, since the formulas of matplotlib need its own fonts."""
    from matplotlib.ticker import FuncFormatter, LogFormatter, MaxNLocator, NullFormatter

    if axis.get_scale() == "linear" and axis.get_label_text() in COUNTS:
        axis.set_major_locator(MaxNLocator(integer=True))
    if axis.get_scale() == "log" and isinstance(axis.get_major_formatter(), LogFormatter):
        low, high = sorted(axis.get_view_interval())
        axis.set_major_formatter(FuncFormatter(_power))
        axis.set_minor_formatter(FuncFormatter(_power) if 0 < high < 10.0 * low else NullFormatter())


def _power(value: float, _: int) -> str:
    mantissa, exponent = f"{value:.0e}".split("e")
    if abs(int(exponent)) < 3:
        return f"{value:g}"
    power = "10" + str(int(exponent)).translate(SUPERSCRIPTS)
    return power if mantissa == "1" else f"{mantissa}·{power}"
