"""An oracle of your own: an index of nearest neighbours proposes the atom, and the dictionary proves the gap.

An index of faiss (`pip install ".[index]"`) searches a part of a large dictionary. What it misses nobody knows, so its
answers prove nothing: delta = 0, and the certificate does not change. Let phi be the descent <grad, x - z> of the last
answer z of the dictionary itself. An answer of the index whose descent is at least phi / K is taken; otherwise the
dictionary is asked. `Result.oracle_calls` counts the answers of the dictionary, `Result.cached` those of the index.
Without faiss, the example searches a random tenth of the columns instead.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import pursuit as ps


def index_of(D: np.ndarray) -> Any:
    """An inverted file of the columns of D, 16 cells of which a question looks into."""
    try:
        import faiss
    except ImportError:
        return RandomTenth(D)
    rows = np.ascontiguousarray(D.T, dtype=np.float32)
    index = faiss.IndexIVFFlat(
        faiss.IndexFlatIP(rows.shape[1]), rows.shape[1], len(rows) // 40, faiss.METRIC_INNER_PRODUCT
    )
    index.train(rows)
    index.nprobe = 16
    index.add(rows)
    return index


class RandomTenth:
    """The largest inner products among a random tenth of the columns, as faiss returns them."""

    def __init__(self, D: np.ndarray) -> None:
        self.D, self.rng = D, np.random.default_rng(0)

    def search(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        some = self.rng.choice(self.D.shape[1], max(k, self.D.shape[1] // 10), replace=False)
        products = queries @ self.D[:, some]
        order = np.argsort(-products, axis=1)[:, :k]
        return np.take_along_axis(products, order, 1), some[order]


@dataclass(frozen=True)
class Indexed(ps.Oracle):
    """Asks the index first, and the dictionary A, of which it is made, where the answer is too weak."""

    A: ps.Dictionary
    index: Any
    K: float = 2.0

    def begin(self, part, space, update):  # type: ignore[no-untyped-def]
        exact, phi, scale = (
            ps.Exact().begin(part, space, update),
            math.inf,
            part.asked.radius / self.A.radius,
        )

        def near(grad: np.ndarray) -> ps.Atom:
            """The best atom that the index finds, by its product in full precision."""
            queries = np.stack([-grad, grad] if part.asked.symmetric else [-grad]).astype(np.float32)
            found = np.unique(self.index.search(queries, 1)[1])
            products = self.A.D.T[found[found >= 0]] @ grad  # faiss fills up with -1
            best = int(np.abs(products).argmax() if part.asked.symmetric else products.argmin())
            sign = -1.0 if part.asked.symmetric and products[best] > 0 else 1.0
            return self.A.column(int(found[found >= 0][best]), sign).scaled(scale)

        def ask(grad: np.ndarray, active: ps.ActiveSet, gx: float) -> ps.Answer:
            nonlocal phi
            if len(active) and 0.0 < phi < math.inf:
                atom = near(grad)
                dot = atom.dot(space, grad) + part.price
                if -part.descent(dot, gx) >= phi / self.K:
                    return ps.Answer([atom], dot, delta=0.0, calls=0)
            answer = exact(grad, active, gx)
            phi = -part.descent(answer.dot, gx)
            return answer

        return ask


def main() -> dict[str, float]:
    D = np.random.default_rng(0).standard_normal((60, 20_000))
    A, f = ps.Dictionary(D, signed=True), ps.LeastSquares(D[:, :30].sum(axis=1))
    index = index_of(D)
    plain = ps.minimize(f, ps.conv(3.0 * A), ps.FullyCorrective())
    r = ps.minimize(f, ps.conv(3.0 * A), ps.FullyCorrective(), oracle=Indexed(A, index))
    for name, run in (("dictionary", plain), ("index", r)):
        print(f"{name:12}{run.value:12.6f}, gap {run.gap:.1e}, {run.oracle_calls} passes, {run.cached} by the index")
    span = ps.minimize(f, ps.lin(A), oracle=Indexed(A, index, K=4.0), stop=ps.Stop(atoms=15))
    print(f"matching pursuit: {span.oracle_calls} passes, {span.cached} answers of the index")
    ps.plots.plot_traces({"dictionary": plain, "index": r}).set_title("asked: the dictionary, or an index of it")
    Path("out").mkdir(exist_ok=True)
    plt.savefig("out/faiss_oracle.png", dpi=150)
    plt.close()
    return {
        "difference": r.value - plain.value,
        "gap": r.gap / r.value,
        "cached": r.cached,
        "lower": plain.value - r.lower,
    }


if __name__ == "__main__":
    main()
