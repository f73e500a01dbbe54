"""Matrix completion on MovieLens beside scikit-surprise and cmfrec, in one run, split as in `examples/movielens.py`.

`python benchmarks/movielens.py [seed]` prints it; peers that are not installed are left out. All choices are made on
the validation part: ours as in the example (5 dampings of the biases, then 12 models), those of the peers over the
grids below; how long that took is printed first. Then come single fits with what was chosen, repeated in turn, medians
of processor time and of time on the clock. Ours takes the radii up to the chosen one; `one radius` goes there at once,
from 16 singular vectors. Films that nobody rated in training get the bias of the user from all methods. Everybody gets
one thread: set OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import runpy
import sys
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

REPETITIONS = 5
SVD_GRID = {"n_factors": (100, 200), "n_epochs": (80,), "lr_all": (0.005, 0.01), "reg_all": (0.05, 0.08, 0.12)}
PENALTIES = tuple([b, b, r, r, 0.0, 0.0] for b in (1.0, 3.0, 10.0) for r in (10.0, 12.0, 14.0))  # of biases and factors
CMF_GRID = {"k": (20, 40, 60), "lambda_": PENALTIES}

example = SimpleNamespace(**runpy.run_path(str(Path(__file__).parent.parent / "examples" / "movielens.py")))


class Model(NamedTuple):
    """Anything that predicts."""

    at: Callable[[Any, Any], np.ndarray]


Fits = dict[str, Callable[[], Any]]


def timed(call: Callable[[], Any]) -> tuple[Any, float, float]:
    """An answer, and how long it took: processor time, time on the clock."""
    clock, processor = time.perf_counter(), time.process_time()
    answer = call()
    return answer, time.process_time() - processor, time.perf_counter() - clock


def ours(train: Any, validation: Any) -> tuple[Fits, str, float]:
    (damping, power, i, _), seconds, _ = timed(lambda: example.choose(train, validation))
    radii = example.RADII[: i + 1]

    def fit(radii: list[float], several: int) -> Any:
        return example.complete(train, example.biases(train, damping), power, radii, several)[-1]

    fits = {"pursuit": lambda: fit(radii, 4), "pursuit, one radius": lambda: fit(radii[-1:], 16)}
    return fits, f"damping {damping:g}, power {power:g}, radius {radii[-1]:g}", seconds


def tuned(
    name: str, fit: Callable[..., Any], grid: dict[str, tuple[Any, ...]], validation: Any
) -> tuple[Fits, str, float]:
    """The default, and the best options of a grid."""
    options = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    best, seconds, _ = timed(lambda: min(options, key=lambda o: example.error(fit(**o), validation)))
    return {f"{name}, default": fit, f"{name}, tuned": lambda: fit(**best)}, str(best), seconds


def surprise(train: Any, validation: Any) -> tuple[Fits, str, float]:
    import pandas as pd
    from surprise import SVD, Dataset, Reader

    data = Dataset.load_from_df(pd.DataFrame(train._asdict()), Reader(rating_scale=(0.5, 5.0))).build_full_trainset()

    def fit(**options: Any) -> Model:
        model = SVD(random_state=0, **options).fit(data)
        return Model(lambda u, i: np.array([model.predict(*pair).est for pair in zip(u, i, strict=True)]))

    return tuned("surprise SVD", fit, SVD_GRID, validation)


def cmfrec(train: Any, validation: Any) -> tuple[Fits, str, float]:
    import pandas as pd
    from cmfrec import CMF

    table = pd.DataFrame(train._asdict()).set_axis(["UserId", "ItemId", "Rating"], axis=1)

    def fit(**options: Any) -> Model:
        model = CMF(random_state=0, nthreads=1, verbose=False, **options).fit(table)
        return Model(lambda u, i: np.asarray(model.predict(u, i), dtype=np.float64))

    return tuned("cmfrec CMF", fit, CMF_GRID, validation)


def main(seed: int) -> None:
    train, validation, test = example.split(seed)
    ours(train, validation)  # compiles
    fits: Fits = {}
    for contestant in (ours, surprise, cmfrec):
        try:
            own, chosen, seconds = contestant(train, validation)
        except ImportError:
            continue
        fits |= own
        print(f"{contestant.__name__}: {seconds:.2f} s to choose {chosen}")
    runs: dict[str, list[Any]] = {name: [] for name in fits}
    for _ in range(REPETITIONS):
        for name, fit in fits.items():
            runs[name].append(timed(fit))
    print(f"{'seed ' + str(seed):24}{'validation':>12}{'test':>10}{'processor':>12}{'clock':>10}")
    for name, taken in runs.items():
        errors = (example.error(taken[0][0], part) for part in (validation, test))
        seconds = (float(np.median([run[k] for run in taken])) for k in (1, 2))
        print(f"{name:24}{next(errors):12.4f}{next(errors):10.4f}{next(seconds):12.3f}{next(seconds):10.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
