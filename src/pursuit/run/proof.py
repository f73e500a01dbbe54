"""Results as proofs that a stranger can check: the problem, the point and dual vectors in the form that
`pursuit.verify` reads. Here nothing is proved; whatever this module writes, the checker accepts no false claim."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from pursuit import verify
from pursuit.arrays import host
from pursuit.files import write_whole
from pursuit.run.statement import Peeled, Spec, dual, objective, summand

if TYPE_CHECKING:
    from pursuit.run.result import Result


class Proof:
    """What a result claims, with all that a stranger needs to check it: `pursuit.verify` reads the file that `save`
    writes, and the user's own data.

    `lower` and `value` are what the checker proves: no point of the domain has a value below `lower`, and the result,
    moved into the domain where rounding has left it outside, has at most `value`.

    >>> import tempfile, numpy as np, pursuit as ps
    >>> from pursuit import verify
    >>> X, y = np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 1.0]]), np.array([1.0, 2.0, 4.0])
    >>> r = ps.minimize(ps.LeastSquares(y), ps.conv(2 * ps.Dictionary(X, signed=True)))
    >>> proof = r.certificate
    >>> proof.gap <= 1e-6 * proof.value, proof.verify()
    (True, True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = proof.save(f"{folder}/proof.json", data=folder)       # without data=, your own files will do
    ...     holds, words = verify.check(str(file), [f"{folder}/y.npy", f"{folder}/map.npy"])
    >>> holds
    True
    """

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        problem = verify.Problem(spec, _read)
        duals = spec.pop("duals")
        bounds = [verify.prove(problem, dual) for dual in duals]
        best = max(range(len(bounds)), key=lambda i: -math.inf if bounds[i] is None else bounds[i])  # type: ignore[arg-type, return-value]
        self._spec["dual"], low = duals[best], bounds[best]
        high, self.moved = verify.value(problem, spec["point"])
        self.lower = -math.inf if low is None else verify.nearest(low, -math.inf)
        self.value = verify.nearest(high, math.inf)
        self.gap = math.inf if low is None else verify.nearest(high - low, math.inf)
        self.trusted = problem.trusted
        self._indefinite = getattr(problem.f, "mu", 0) == -1

    @classmethod
    def of(cls, result: Result) -> Proof:
        """The proof of what a result claims. An objective or a point without a rule is refused."""
        f, parts = result.f, result.domain.parts
        if not f.convex or not f.exact:
            raise ValueError(f"f is {f!r}; a bound is proved of a convex function with exact gradients only.")
        atoms = [[a for a, b in zip(result.atoms, result.blocks, strict=True) if b == i] for i in range(len(parts))]
        peeled = [Peeled.of(part.A, mine) for part, mine in zip(parts, atoms, strict=True)]
        points = [getattr(result, "dual_point", None), f.value_and_grad(result.x)[1]]
        return cls({
            "format": "pursuit-proof",
            "version": 1,
            "f": objective(f),
            "domain": [summand(part, p) for part, p in zip(parts, peeled, strict=True)],
            "point": [p.point(result, b) for b, p in enumerate(peeled)],
            "duals": [dual(result, peeled, host(u)) for u in points if u is not None],
        })  # fmt: skip

    def verify(self) -> bool:
        """Whether the checker, asked again, proves the claim from the arrays in memory."""
        problem = verify.Problem(self._spec, _read)
        low, high = verify.prove(problem, self._spec["dual"]), verify.value(problem, self._spec["point"])[0]
        return high <= Fraction(self.value) and (low is None or low >= Fraction(self.lower))

    def save(self, path: Any, *, data: Any = None) -> Path:
        """Write the proof as JSON.

        It names y, the dictionary and other data by their hashes: `python -m pursuit.verify proof.json --data X.npy
        y.npy` compares these with your files, in which the numbers must be the same (in any real or integer dtype).

        Parameters
        ----------
        path : str or path
            The file, which is replaced as a whole.
        data : str or path, optional
            A folder for the arrays that the proof names, as .npy and .npz files; made where it does not exist.
        """
        if not math.isfinite(self.lower):
            advice = "H has an eigenvalue below 0, if only by rounding: give H + c I with a tiny c"
            why = f"; {advice}, or its factor to LeastSquares" if self._indefinite else ""
            raise ValueError(f"nothing is proved below the value of this result, no claim to save{why}.")
        arrays: dict[str, Any] = {}
        spec = _referred(self._spec | {"claim": {"lower": self.lower, "value": self.value}}, arrays, "")
        if data is not None:
            Path(data).mkdir(parents=True, exist_ok=True)
            for name, a in arrays.items():
                file = Path(data) / name
                if sp.issparse(a):
                    sp.save_npz(file.with_suffix(".npz"), _by_columns(a))
                else:
                    np.save(file.with_suffix(".npy"), a)
        target = Path(path)
        write_whole(json.dumps(spec, allow_nan=False), target)
        return target

    def __repr__(self) -> str:
        return f"Proof(lower {self.lower:.6g}, value {self.value:.6g}, gap {self.gap:.3g})"


def _read(spec: Any, name: str) -> tuple[tuple[int, ...], Any]:
    """Arrays in memory, as the checker reads them."""
    if sp.issparse(spec):
        a = _by_columns(spec)
        return a.shape, verify.Table(a.shape, a.data, a.indptr.astype(np.int64), a.indices.astype(np.int64))
    if isinstance(spec, np.ndarray):
        return spec.shape, np.ascontiguousarray(spec, dtype=np.float64).ravel()
    verify.need(isinstance(spec, list), f"The array {name} is missing.")
    return (len(spec),), [float(v) for v in spec]


def _by_columns(a: Any) -> Any:
    a = sp.csc_array(a, dtype=np.float64, copy=True)
    a.sum_duplicates()
    return a


def _referred(value: Any, arrays: dict[str, Any], name: str) -> Any:
    """The JSON value in which data are hashes; the arrays go to `arrays` by name."""
    if isinstance(value, dict):
        return {key: _referred(each, arrays, key) for key, each in value.items()}
    if isinstance(value, list):
        return [_referred(each, arrays, name) for each in value] if value and isinstance(value[0], dict) else value
    if not isinstance(value, np.ndarray) and not sp.issparse(value):
        return value
    unique = name if name not in arrays else f"{name}{sum(key.startswith(name) for key in arrays)}"
    arrays[unique] = value
    shape, numbers = _read(value, name)
    return {"sha256": verify.digest(numbers), "shape": list(shape)}
