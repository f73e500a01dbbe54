"""Portfolio: how a long-only portfolio changes with the aversion to risk.

The weights w of 10 assets lie on the simplex and minimise aversion/2 w'Sw - m'w: half the variance, priced, minus the
expected return. `Quadratic` over `conv(Simplex(n))` is solved to rounding with a certificate, and a run that starts at
the weights for a lower aversion (`start=result`) needs hardly more than the oracle call that proves its answer. With
little aversion one asset is held, with much the mixture of least variance, and few assets anywhere between.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import pursuit as ps

NAMES = "energy", "materials", "industry", "retail", "food", "health", "banks", "software", "chips", "water"


def market(months: int = 480, seed: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Expected returns and covariances for a year, estimated from months made by a market and two styles."""
    rng, n = np.random.default_rng(seed), len(NAMES)
    beta, noise = np.linspace(1.6, 0.4, n)[rng.permutation(n)], rng.uniform(0.02, 0.06, n)
    common = rng.standard_normal((months, 3)) * [0.045, 0.02, 0.02]
    loads = np.column_stack([beta, rng.standard_normal((n, 2))])
    returns = 0.002 + 0.005 * beta + common @ loads.T + noise * rng.standard_normal((months, n))
    return 12 * returns.mean(axis=0), 12 * np.cov(returns.T)


def main() -> dict[str, float]:
    (mean, S), simplex, stop = market(), ps.conv(ps.Simplex(len(NAMES))), ps.Stop(gap=1e-10, rgap=None)
    aversions, results, cold = np.geomspace(0.5, 50, 100), [], 0
    for f in (ps.Quadratic(aversion * S, -mean) for aversion in aversions):
        results.append(ps.minimize(f, simplex, start=results[-1] if results else None, stop=stop))
        cold += ps.minimize(f, simplex, stop=stop).oracle_calls
    weights = np.array([r.x for r in results])
    risk, gain = np.sqrt(np.einsum("ki,ij,kj->k", weights, S, weights)), weights @ mean
    for k in (0, 40, 99):
        held = ", ".join(f"{NAMES[i]} {weights[k, i]:.0%}" for i in np.argsort(-weights[k])[:3] if weights[k, i])
        print(f"aversion {aversions[k]:4.1f}: return {gain[k]:5.1%}, risk {risk[k]:5.1%}; {held}")
    warm, gap = sum(r.oracle_calls for r in results), max(r.gap for r in results)
    print(f"{warm} oracle calls with warm starts, {cold} without; certified gaps up to {gap:.0e}")
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained", width_ratios=[1.3, 1])
    left.stackplot(aversions, weights.T, colors=plt.cm.tab20.colors)
    left.set(
        title="shares, coloured as on the right", xscale="log", xlabel="aversion to risk", xlim=(0.5, 50), ylim=(0, 1)
    )
    right.plot(100 * risk, 100 * gain, color="0.3")
    for i, (x, y) in enumerate(zip(100 * np.sqrt(np.diag(S)), 100 * mean, strict=True)):
        right.plot(x, y, "o", color=plt.cm.tab20.colors[i])
        right.text(x + 0.4, y, NAMES[i], fontsize="small", verticalalignment="center")
    right.set(title="the efficient frontier", xlabel="risk, % a year", ylabel="return, % a year", xmargin=0.2)
    Path("out").mkdir(exist_ok=True)
    figure.savefig("out/portfolio.png", dpi=150)
    plt.close(figure)
    return {"warm": warm, "cold": cold, "gap": gap, "highest return": float(gain[0])}


if __name__ == "__main__":
    main()
