"""Installs the wheel of a folder into an empty environment, and tries it there: what works without extras, and what
says which extra it needs.

python tools/check_dist.py dist
python tools/check_dist.py         tries what is installed here, for cibuildwheel
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

STORED = Path(__file__).resolve().parent.parent / "tests" / "stored" / "0.1.0" / "classifier.json"
TRIAL = (
    f"STORED = {str(STORED)!r}"
    + """
import numpy as np, pursuit as ps
rng = np.random.default_rng(0)
D = rng.standard_normal((20, 50))
y = 2.0 * D[:, 3] - D[:, 7]
r = ps.minimize(ps.LeastSquares(y), ps.lin(ps.Dictionary(D)), stop=ps.Stop(atoms=2))
assert sorted(a.source for a in r.atoms) == [3, 7], r
assert ps.encode(D, y[None], atoms=2).indices.tolist() == [3, 7]  # the compiled kernels are there
try:
    import pursuit.estimators
except ImportError as error:
    assert "pip install scikit-learn" in str(error), error
else:
    raise AssertionError("estimators need scikit-learn, which should not be here")
chances = ps.load(STORED).predict_proba(rng.standard_normal((9, 8)))  # linear models predict without scikit-learn
assert chances.shape == (9, 2) and abs(chances.sum(axis=1) - 1.0).max() < 1e-12
print("pursuit", ps.__version__, "works in an empty environment")
"""
)


def main(folder: Path) -> None:
    """Install and try."""
    (wheel,) = folder.glob("pursuit-*.whl")
    with tempfile.TemporaryDirectory() as place:
        venv.create(place, with_pip=True)
        python = Path(place) / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, str(wheel)], check=True)
        subprocess.run([python, "-I", "-c", TRIAL], check=True, cwd=place)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        exec(TRIAL)
