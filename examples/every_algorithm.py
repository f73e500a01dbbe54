"""Every algorithm of the paper on one small problem: a table, and a convergence plot under out/.

Weighted least squares on a Gaussian dictionary, over its L1 ball (Frank-Wolfe) and over its span (matching pursuit).
One atom enters per oracle call, as in the paper; the last line of each block is the package's own default.
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np

import pursuit as ps

mpl.use("Agg")
import matplotlib.pyplot as plt

OUT = Path("out")


def problem(seed: int = 0) -> tuple[np.ndarray, np.ndarray, float]:
    """A 50 x 200 dictionary with unit columns, a noisy combination of 5 of them, and 0.9 times its L1 norm."""
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((50, 200))
    D /= np.linalg.norm(D, axis=0)
    coef = np.zeros(200)
    coef[rng.choice(200, 5, replace=False)] = [2.0, -1.5, 1.0, -1.0, 0.5]
    return D, D @ coef + 0.02 * rng.standard_normal(50), 0.9 * np.abs(coef).sum()


def algorithms(f: ps.LeastSquares, D: np.ndarray, radius: float) -> dict[str, tuple]:
    """Name -> (domain, update), by the table of the paper's algorithms."""
    hull, span = ps.conv(radius * ps.Dictionary(D, signed=True)), ps.lin(ps.Dictionary(D))
    C = np.einsum("ij,i,ij->j", D, f.metric.h, D).max()  # curvature along the atoms: C^MP, and C_f = 4 radius^2 C
    return {
        "Alg. 2 v0  Frank-Wolfe, 2/(t+2)": (hull, ps.Plain(ps.OpenLoop())),
        "Alg. 2 v1  line search": (hull, ps.Plain(ps.LineSearch())),
        "Alg. 2 v2  diameter step": (hull, ps.Plain(ps.DiameterStep())),
        "Alg. 2 v3  short step = Alg. 3 v0": (hull, ps.Plain(ps.ShortStep())),
        "Alg. 3 v1  norm-corrective FW": (hull, ps.NormCorrective()),
        "Alg. 5     affine-invariant FW": (hull, ps.Plain(ps.CurvatureStep(4 * radius**2 * C))),
        "the default over a hull": (hull, None),
        "Alg. 1     matching pursuit": (span, ps.Plain(ps.LineSearch())),
        "Alg. 1     OMP = Alg. 6 v2": (span, ps.FullyCorrective()),
        "Alg. 4 v0  norm-corrective GMP": (span, ps.Plain(ps.ShortStep())),
        "Alg. 4 v1  norm-corrective GMP": (span, ps.NormCorrective()),
        "Alg. 6 v1  affine-invariant GMP": (span, ps.Plain(ps.CurvatureStep(C))),
        "the default over a span": (span, None),
    }


def main() -> dict[str, float]:
    D, y, radius = problem()
    f = ps.LeastSquares(y, weights=np.linspace(0.2, 1.0, len(y)))
    stop = ps.Stop(gap=1e-10, rgap=None, iterations=1000)
    hull, span, gaps = {}, {}, {}
    print(f"{'algorithm':36}{'f(x)':>12}{'gap':>10}{'atoms':>7}{'calls':>7}")
    for name, (domain, update) in algorithms(f, D, radius).items():
        r = ps.minimize(f, domain, update, stop=stop)
        print(f"{name:36}{r.value:12.4e}{r.gap:10.1e}{len(r.atoms):7}{r.oracle_calls:7}")
        (hull if repr(domain).startswith("conv") else span)[" ".join(name.split())] = r.trace
        gaps[name] = r.gap
    draw(hull, span)
    return gaps


def draw(hull: dict[str, ps.Trace], span: dict[str, ps.Trace]) -> None:
    from pursuit.plots import plot_traces

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
    plot_traces(hull, ax=left)
    left.set(title="over the hull: certified gap", ylabel="f(x) - f* is at most this")
    plot_traces(span, column="value", ax=right)
    right.set(title="over the span: value", ylabel="f(x)", ylim=(1e-17, None))
    right.legend(frameon=False, fontsize="small", loc="lower right")
    OUT.mkdir(exist_ok=True)
    path = OUT / "convergence.png"
    figure.savefig(path, dpi=150)
    print(f"\nwrote {path}")


if __name__ == "__main__":
    main()
