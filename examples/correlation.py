"""Nearest correlation matrix: the intersection of two sets of which each knows its own oracle only.

Estimated pair by pair, correlations of ten series make a matrix G with negative eigenvalues. The nearest true one is
positive semidefinite of trace n (`n * Spectrahedron(n)`), and has a diagonal of ones and entries in [-1, 1] (`Box`). No
oracle knows a point of both sets, so x lies in the one and y in the other, and the method of multipliers draws them
together:

    minimise 1/2 ||x - G||^2 + <u, x - y> + rho/2 ||x - y||^2 over x and y, then u <- u + rho (x - y).

Where x = y the last two terms vanish: every certified lower bound of these runs is one for the intersection.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

import pursuit as ps

N, RHO = 10, 6.0


def estimated(rng: np.random.Generator) -> np.ndarray:
    """Correlations of series with three common factors, with an error of its own for each pair."""
    error = 0.3 * rng.standard_normal((N, N))
    G = np.clip(np.corrcoef(rng.standard_normal((N, 3))) + error + error.T, -1, 1)
    np.fill_diagonal(G, 1.0)
    return G


def main() -> dict[str, float]:
    G = estimated(np.random.default_rng(0)).ravel()
    box = ps.Box(2.0 * np.eye(N).ravel() - 1.0, np.ones(N * N))
    domain = ps.product(ps.conv(N * ps.Spectrahedron(N)), ps.conv(box))
    H = sp.kron([[1.0 + RHO, -RHO], [-RHO, RHO]], sp.eye_array(N * N))
    u, lower, rows, r = np.zeros(N * N), -np.inf, [], None
    while not rows or rows[-1][0] > 1e-5:
        r = ps.minimize(ps.Quadratic(H, np.concatenate([u - G, -u])), domain, start=r, stop=ps.Stop(rgap=1e-9))
        x, y = (piece.ravel() for piece in domain.split(r.x))
        u += RHO * (x - y)
        lower = max(lower, r.lower + 0.5 * float(G @ G))
        rows.append((float(np.linalg.norm(x - y)), 0.5 * float((x - G) @ (x - G)), lower))
    distance, value, lower = rows[-1]
    X = x.reshape(N, N)
    diagonal = float(np.abs(np.diag(X) - 1).max())
    print(
        f"smallest eigenvalue: {np.linalg.eigvalsh(G.reshape(N, N))[0]:.3f} before, {np.linalg.eigvalsh(X)[0]:.1e} now"
    )
    print(f"diagonal: 1 to {diagonal:.0e}; x and y are {distance:.0e} apart, {len(rows)} multipliers")
    print(f"f(x) = {value:.7f}; no correlation matrix is below {lower:.7f}")
    figure, (left, middle, right) = plt.subplots(
        1, 3, figsize=(12, 3.8), layout="constrained", width_ratios=[1, 1, 1.2]
    )
    for ax, shown, title in (
        (left, G.reshape(N, N), "estimated pair by pair"),
        (middle, X, "the nearest correlations"),
    ):
        picture = ax.imshow(shown, vmin=-1, vmax=1, cmap="RdBu_r")
        ax.set(title=title, xticks=[], yticks=[])
    figure.colorbar(picture, ax=middle)
    right.semilogy([row[0] for row in rows], "o-", label="||x - y||")
    right.semilogy([lower - row[2] or np.nan for row in rows], "s-", label="last lower bound - this one")
    right.set(title="x and y meet, and the bound rises", xlabel="multipliers")
    right.legend()
    Path("out").mkdir(exist_ok=True)
    figure.savefig("out/correlation.png", dpi=150)
    plt.close(figure)
    return {"value": value, "lower": lower, "distance": distance, "diagonal": diagonal}


if __name__ == "__main__":
    main()
