"""What a run leaves behind: the table, benchmarks/RESULTS.md and the figures."""

from __future__ import annotations

import math
import textwrap
from pathlib import Path
from typing import Any

from common import Row, slope
from goals import goals

WIDTH = 34
AXES = {
    "signals": "number of signals", "k": "atoms chosen, k", "n": "atoms in the dictionary, n", "d": "length, d",
    "active": "active atoms",
}  # fmt: skip
COLOURS = ["#4c78a8", "#f58518", "#54a24b"]
LEGEND = """\
ms     median time; on one thread that of the processor
ratio  that time divided by that of the case's first line: above 1, the first line is faster
calls  times the oracle was asked
atoms  active at the end, the mean over the signals
same   whether the atoms are those of the first line (SPAMS: of pursuit's ols), or the share of signals where they are
"""


# ---------------------------------------------------------------------- the table


def table(run: dict[str, Any]) -> str:
    """One block of lines per case, one line per contender, all thread counts side by side."""
    threads, rows = run["threads"], run["rows"]
    over = " " * WIDTH + "".join(f"{f'{t} thread' + 's' * (t > 1):>19}" for t in threads)
    head = (
        f"{'':{WIDTH}}" + "".join(f"{'ms':>11}{'ratio':>8}" for _ in threads) + f"{'calls':>7}{'atoms':>7}{'same':>7}"
    )
    lines = [over, head]
    for key, title in run["titles"].items():
        lines += ["-" * len(head), title]
        mine = [row for row in rows if row.case == key]
        names = list(dict.fromkeys(row.contender for row in mine))
        first = {row.threads: row.seconds for row in mine if row.contender == names[0]} if names else {}
        lines += [line([r for r in mine if r.contender == name], threads, first) for name in names]
        lines += wrapped(run["notes"].get(key, []), len(head))
    return "\n".join(line.rstrip() for line in lines)


def wrapped(notes: list[str], width: int) -> list[str]:
    return [
        text for note in notes for text in textwrap.wrap(note, width, initial_indent="  * ", subsequent_indent="    ")
    ]


def line(rows: list[Row], threads: list[int], first: dict[int, float | None]) -> str:
    by_threads, text = {row.threads: row for row in rows}, f"  {rows[0].contender:{WIDTH - 2}}"
    for t in threads:
        row = by_threads.get(t)
        if row is None or row.seconds is None:
            note = "" if row is None else row.note
            return text + f"  {note}"
        base = first.get(t)
        text += f"{digits(1e3 * row.seconds):>11}{digits(row.seconds / base) if base else '-':>8}"
    last = rows[-1]
    calls = "-" if last.calls is None else str(last.calls)
    atoms = "-" if last.atoms is None else f"{last.atoms:.4g}"
    return text + f"{calls:>7}{atoms:>7}{same(rows):>7}"


def same(rows: list[Row]) -> str:
    shares = [row.same for row in rows if row.same is not None]
    if not shares:
        return "-"
    worst = min(shares)
    return "yes" if worst == 1.0 else "no" if worst == 0.0 else f"{math.floor(1000 * worst) / 10:.1f}%"


def digits(x: float) -> str:
    """Three digits, or all of those before the point."""
    return (
        f"{x:,.0f}"
        if x >= 100
        else f"{x:.1f}"
        if x >= 10
        else f"{x:.2f}"
        if x >= 0.1
        else f"{x:.2g}"
        if x >= 0.001
        else f"{x:.0e}"
    )


# ---------------------------------------------------------------------- RESULTS.md


def results(run: dict[str, Any]) -> str:
    facts = "\n".join(f"| {name} | {value} |" for name, value in run["facts"].items())
    return f"""\
# The last run of `make bench`

Written by `benchmarks/run.py`; compare figures within this run only. Contenders took turns; a first, warming call is
not counted. One process per number of threads, which holds for BLAS and for the contenders alike.

```
{LEGEND}
{table(run)}
```

## What is asked for

{asked(run["rows"])}

## How near to what the machine can do

Measured in the same run:

{limits(run)}

Bytes are compared with the faster of the two readings, floating-point operations with dgemm. More than 100 % of a limit
means that the work counted, that of the plain way, was not done: the same answer was found with less.

{fractions(run)}

## How cost grows

{slopes(run)}

## What a process waits for at first

Milliseconds: the import beyond that of numpy and scipy, and the first call.

{waiting(run)}

## The machine

| | |
|---|---|
{facts}

## Other scripts

`oracles.py` (a hundred hard instances against the plain way; whole runs with the screened oracle), `updates.py` (which
update when), `overhead.py` (what the loop costs), `geometry.py` (widths).
"""


def asked(rows: list[Row]) -> str:
    lines = ["| times as fast | measured | asked | |", "|---|---|---|---|"]
    for what, ratio, goal in goals(rows):
        lines.append(f"| {what} | {digits(ratio)} | {digits(goal)} | {'reached' if ratio >= goal else '**missed**'} |")
    return "\n".join(lines)


def limits(run: dict[str, Any]) -> str:
    names = list(run["limits"][str(run["threads"][0])])
    lines = ["| threads | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    rates = {t: " | ".join(f"{run['limits'][str(t)][name]:.0f}" for name in names) for t in run["threads"]}
    lines += [f"| {t} | {text} |" for t, text in rates.items()]
    return "\n".join(lines)


def fractions(run: dict[str, Any]) -> str:
    threads = run["threads"]
    head = "".join(f" {t} thread{'s' * (t > 1)} |" for t in threads)
    lines = [f"| case | counted |{head}", "|---|---|" + "---|" * len(threads)]
    for key, (amount, unit, counted) in run["work"].items():
        text = f"| {key} | {amount / 1e9:.3g} G{unit}: {counted} |"
        first = {}
        for row in run["rows"]:
            if row.case == key:
                first.setdefault(row.threads, row.seconds)
        for t in threads:
            machine = run["limits"][str(t)]
            limit = machine["dgemm GF/s"] if unit == "flop" else max(machine["gemv GB/s"], machine["copy GB/s"])
            rate = amount / first[t] / 1e9 if first.get(t) else 0.0
            text += f" {rate:.3g} {'GF/s' if unit == 'flop' else 'GB/s'}, {100 * rate / limit:.0f} % |"
        lines.append(text)
    return "\n".join(lines)


def slopes(run: dict[str, Any]) -> str:
    lines = ["One thread; time ~ size^slope.", "", "| against | what | sizes | slope |", "|---|---|---|---|"]
    for against, curves in run["growth"].items():
        lines += [f"| {against} | {c['label']} | {span(c['sizes'])} | {c['slope']:.2f} |" for c in curves]
    found = run["memory"]
    if found:
        less = ", ".join(f"{p - 2 * c:.0f}" for p, c in zip(found["peak"], found["codes"], strict=True))
        lines += [
            "",
            f"Peak memory of `encode`, {span(found['signals'])} signals, less two copies of the codes: {less} MiB.",
        ]
    return "\n".join(lines)


def waiting(run: dict[str, Any]) -> str:
    lines = ["| first call | import | call |", "|---|---|---|"]
    lines += [f"| {what} | {1e3 * load:.0f} | {1e3 * call:.1f} |" for what, load, call in run["first_calls"]]
    return "\n".join(lines)


def span(sizes: list[int]) -> str:
    return f"{sizes[0]:,} to {sizes[-1]:,}"


# ---------------------------------------------------------------------- figures


def figures(run: dict[str, Any], out: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "font.size": 9})
    bars(run, out / "ratios.png")
    if run["growth"]:
        curves(run, out / "growth.png")


def bars(run: dict[str, Any], path: Path) -> None:
    """How many times as long as ours each peer takes, a panel of bars per case."""
    import matplotlib.pyplot as plt

    threads = run["threads"]
    cases = {key: peers(run["rows"], key) for key in run["titles"]}
    cases = {key: found for key, found in cases.items() if found}
    if not cases:
        return
    heights = [len(found) + 0.9 for found in cases.values()]
    fig, axes = plt.subplots(
        len(cases), 1, figsize=(8, 0.3 * sum(heights) + 0.8), sharex=True, squeeze=False,
        gridspec_kw={"height_ratios": heights}, layout="constrained",
    )  # fmt: skip
    for ax, (key, found) in zip(axes[:, 0], cases.items(), strict=True):
        for i, t in enumerate(threads):
            places = [j + (i - (len(threads) - 1) / 2) * 0.36 for j in range(len(found))]
            ratios = [by_threads.get(t, float("nan")) for by_threads in found.values()]
            label = f"{t} thread{'s' * (t > 1)}"
            ax.barh(places, [r - 1 for r in ratios], 0.34, left=1.0, color=COLOURS[i], label=label)
            for place, r in zip(places, ratios, strict=True):
                if not math.isnan(r):
                    side, gap = ("left", 3) if r >= 1 else ("right", -3)
                    ax.annotate(
                        digits(r), (r, place), (gap, 0), textcoords="offset points", ha=side, va="center", fontsize=7
                    )
        ax.set(yticks=range(len(found)), yticklabels=found, xscale="log", ylim=(len(found) - 0.4, -0.6))
        ax.set_title(run["titles"][key], loc="left", fontsize=9)
        ax.axvline(1.0, color="black", linewidth=0.8)
        ax.tick_params(axis="y", length=0)
        ax.margins(x=0.08)
        ax.tick_params(axis="x", which="both", length=0)
        ax.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
        ax.grid(axis="x", linewidth=0.3)
    axes[0, 0].legend(frameon=False, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=len(threads))
    axes[-1, 0].set_xlabel("time divided by that of pursuit (log scale; to the right of 1, pursuit is faster)")
    fig.savefig(path, dpi=130)
    plt.close(fig)


def peers(rows: list[Row], key: str) -> dict[str, dict[int, float]]:
    """contender -> threads -> ratio, for those that are not ours."""
    mine = [row for row in rows if row.case == key and row.seconds]
    first: dict[int, float] = {}
    found: dict[str, dict[int, float]] = {}
    for row in mine:
        first.setdefault(row.threads, row.seconds)
        if not row.contender.startswith("pursuit"):
            found.setdefault(row.contender, {})[row.threads] = row.seconds / first[row.threads]
    return found


def curves(run: dict[str, Any], path: Path) -> None:
    """Time against signals, k, n, d and active atoms on log axes; memory against signals."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator

    fig, axes = plt.subplots(2, 3, figsize=(12, 7), layout="constrained")
    panels = run["growth"] | {"active": factors(run["rows"])}
    for ax, (against, found) in zip(axes.flat, panels.items(), strict=False):
        for c in found:
            label = f"{c['label']}: slope {c['slope']:.2f}"
            ax.loglog(c["sizes"], [1e3 * s for s in c["seconds"]], "o-", label=label)
        low, high = ax.get_ylim()
        ax.set(
            xlabel=AXES[against], ylabel="ms, one thread", ylim=(low, high * (high / low) ** 0.3)
        )  # room for the legend
        ax.set_xticks(sorted({size for c in found for size in c["sizes"]}), minor=False)
        ax.tick_params(axis="x", which="major", labelrotation=30)
        ax.minorticks_off()
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(lambda x, _: f"{x:,.4g}" if x < 1000 else f"{x:,.0f}")
        ax.legend(frameon=False, fontsize=8, loc="upper left")
    if run["memory"]:
        remember(axes.flat[5], run["memory"])
    fig.savefig(path, dpi=130)
    plt.close(fig)


def factors(rows: list[Row]) -> list[dict[str, Any]]:
    """The weight solver as curves, out of the cases weights50, weights200, ..."""
    found: dict[str, dict[int, float]] = {}
    for row in rows:
        if row.case.startswith("weights") and row.threads == 1 and row.seconds:
            found.setdefault(row.contender, {})[int(row.case.removeprefix("weights"))] = row.seconds
    return [
        {"label": name, "sizes": list(times), "seconds": list(times.values()), "slope": slope(times, times.values())}
        for name, times in found.items()
        if name.startswith("pursuit")
    ]


def remember(ax: Any, found: dict[str, list[float]]) -> None:
    less = [p - 2 * c for p, c in zip(found["peak"], found["codes"], strict=True)]
    ax.semilogx(found["signals"], found["peak"], "o-", label="encode: peak of the process")
    ax.semilogx(found["signals"], less, "o-", label="less two copies of the codes")
    ax.set(xlabel="number of signals", ylabel="MiB", ylim=(0, 1.3 * max(found["peak"])))
    ax.legend(frameon=False, fontsize=8, loc="upper left")
