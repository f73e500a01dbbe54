"""Axes to draw on, and SVG drawings of them that suit light and dark pages."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

from pursuit.report.page import Figure

BLUE, RED, GREEN, PURPLE, GREY = "#0072b2", "#d55e00", "#009e73", "#a8497a", "#777777"
"""Colours that colour-blind readers can tell apart, too."""

VARIABLES = {BLUE: "--blue", RED: "--red", GREEN: "--green", PURPLE: "--purple"}
"""The names of the colours in the style of a page, which has brighter ones for the dark."""

FONTS = {
    "font.size": 11.0,
    "axes.labelsize": 11.0,
    "axes.titlesize": 12.0,
    "legend.fontsize": 10.0,
    "legend.handlelength": 1.4,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.8,
    "text.parse_math": False,  # a name may have dollar signs
    "svg.fonttype": "none",  # text stays text, in the font of the page
}
COUNTS = ("atoms", "features", "iterations")
"""Labels of axes that count."""

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


LEGEND_CHARACTERS = 60
"""What fits below a figure, side by side; a line before a name takes five."""


@contextmanager
def style() -> Iterator[Any]:
    """Fonts, lines and colours of all drawings, whatever the user's settings of matplotlib are; yields the settings."""
    try:
        import matplotlib as mpl
        from cycler import cycler
    except ImportError as missing:
        raise ImportError("figures need matplotlib; install pursuit[plot].") from missing

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(FONTS)
        mpl.rcParams["axes.prop_cycle"] = cycler(color=[BLUE, RED, GREEN, PURPLE, "#b8860b", "#56b4e9", GREY])
        yield mpl.rcParams


class Panel:
    """Axes to draw on; `done` makes a drawing of them. Neither changes the settings or windows of matplotlib."""

    def __init__(self, name: str, title: str, size: tuple[float, float] = (5.0, 3.7), **labels: Any) -> None:
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure as Canvas

        self.name, self.title = name, title
        with style():
            self.canvas = Canvas(figsize=size, layout="constrained")
            FigureCanvasSVG(self.canvas)
            self.ax = self.canvas.add_subplot()
            self.ax.set_title(title)
            self.ax.set(**labels)
            self.ax.grid(alpha=0.25)

    def done(self, caption: str, legend_below: bool = False) -> Figure:
        """The finished drawing, its legend inside the axes or below them."""
        stream = io.StringIO()
        with style() as settings:
            settings["svg.hashsalt"] = self.name  # names inside a drawing differ from those of the others on a page
            for ax in self.canvas.axes:
                for axis in (ax.xaxis, ax.yaxis):
                    _use_plain_powers(axis)
                    _use_whole_numbers(axis)
                legend = ax.get_legend()
                if legend_below and legend is not None:
                    longest = max(len(text.get_text()) for text in legend.get_texts())
                    legend.remove()
                    beside = max(1, min(3, LEGEND_CHARACTERS // (longest + 5)))
                    self.canvas.legend(loc="outside lower center", ncols=beside, frameon=False, columnspacing=1.0)
                elif ax.get_legend_handles_labels()[1]:
                    ax.legend(frameon=False)
            self.canvas.savefig(stream, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
        return Figure(self.name, caption, _for_pages(stream.getvalue(), self.title or self.name.replace("-", " ")))


def _use_plain_powers(axis: Any) -> None:
    """Label a log axis by 10⁻³ as plain text: the formulas of matplotlib need its own fonts."""
    from matplotlib.ticker import FuncFormatter, LogFormatter, NullFormatter

    def text(v: float, _: Any) -> str:
        mantissa, exponent = f"{v:.0e}".split("e")
        if abs(int(exponent)) < 3:
            return f"{v:g}"
        power = "10" + str(int(exponent)).translate(SUPERSCRIPTS)
        return power if mantissa == "1" else f"{mantissa}·{power}"

    if axis.get_scale() == "log" and isinstance(axis.get_major_formatter(), LogFormatter):
        axis.set_major_formatter(FuncFormatter(text))
        low, high = sorted(axis.get_view_interval())
        few = low > 0 and high / low < 10.0  # less than two powers of ten are in sight
        axis.set_minor_formatter(FuncFormatter(text) if few else NullFormatter())


def _use_whole_numbers(axis: Any) -> None:
    """Ticks of counts are whole numbers."""
    from matplotlib.ticker import MaxNLocator

    if axis.get_scale() == "linear" and axis.get_label_text() in COUNTS:
        axis.set_major_locator(MaxNLocator(integer=True))


def _for_pages(svg: str, label: str) -> str:
    """The drawing without what only matplotlib needs: black is the colour of the text, fonts are those of the page."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r"font: (italic |oblique )?[\w ]*?([\d.]+px)[^;\"]*", _font, svg)
    svg = svg.replace("xlink:href", "href").replace("#000000", "currentColor")
    for colour, variable in VARIABLES.items():
        svg = svg.replace(colour, f"var({variable}, {colour})")
    used = set(re.findall(r"(?:url\(|href=\")#([\w.-]+)", svg))
    svg = re.sub(r' id="([\w.-]+)"', lambda m: m.group() if m.group(1) in used else "", svg)
    svg = re.sub(r"\n\s*", "\n", svg)
    look = f'role="img" aria-label="{escape(label)}" fill="currentColor" font-family="sans-serif"'
    return svg.replace("<svg ", f"<svg {look} ", 1)


def _font(found: re.Match[str]) -> str:
    style = f"font-style: {found.group(1).strip()}; " if found.group(1) else ""
    return f"{style}font-size: {found.group(2)}"
