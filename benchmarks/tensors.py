"""Completion of a 40 x 40 x 40 tensor of rank 4 from 10 % of its entries, beside pyttb and TensorLy, in one run.

`python benchmarks/tensors.py` prints it; peers that are not installed are left out. The tensor is a sum of four
products of standard normal vectors with noise of 1 % of its standard deviation on every entry. `held-out` is the
relative error at the 90 % that nobody saw, which are noisy themselves: 0.0100 is what the truth would get, and a least
squares fit is expected at 0.0100 sqrt(1 + 472 / 6400) = 0.0104. `truth` is the error against the noise-free tensor.
Every method gets the rank. The peers start at random, and start again, at most five times, until they fit the observed
entries to 5 %. Seconds are processor time, medians over the repetitions, the methods taking turns; set
OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import numpy as np

import pursuit as ps

SHAPE, RANK = (40, 40, 40), 4
REPETITIONS, PROBLEMS = 3, 5


def problem(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = np.einsum("ir,jr,kr->ijk", *(rng.standard_normal((n, RANK)) for n in SHAPE))
    return truth, truth + 0.01 * truth.std() * rng.standard_normal(SHAPE), rng.random(SHAPE) > 0.9


def ours(noisy: np.ndarray, seen: np.ndarray) -> np.ndarray:
    A = ps.RankOneTensor(SHAPE).at(np.argwhere(seen))
    stop, refine = ps.Stop(atoms=RANK), ps.refine.Alternating()
    return ps.minimize(ps.LeastSquares(noisy[seen]), ps.lin(A), stop=stop, refine=refine).coef.full()


def restarted(fit: Callable[[int], np.ndarray], noisy: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """The first of five starts that fits the observed entries to 5 %, or the last."""
    for seed in range(5):
        model = fit(seed)
        if relative(model, noisy, seen) < 0.05:
            break
    return model


def pyttb(noisy: np.ndarray, seen: np.ndarray) -> np.ndarray:
    import pyttb as ttb
    from pyttb.gcp.handles import Objectives
    from pyttb.gcp.optimizers import LBFGSB

    data, mask = ttb.tensor(noisy * seen), ttb.tensor(seen.astype(float))

    def fit(seed: int) -> np.ndarray:
        np.random.seed(seed)  # noqa: NPY002  (what pyttb draws from)
        model, _, _ = ttb.gcp_opt(data, RANK, Objectives.GAUSSIAN, LBFGSB(maxiter=1000), mask=mask, printitn=0)
        return np.asarray(model.full().data)

    return restarted(fit, noisy, seen)


def tensorly(noisy: np.ndarray, seen: np.ndarray) -> np.ndarray:
    from tensorly import cp_to_tensor
    from tensorly.decomposition import parafac

    def fit(seed: int) -> np.ndarray:
        options = {"n_iter_max": 1000, "tol": 1e-8, "init": "random", "random_state": seed}
        return np.asarray(cp_to_tensor(parafac(noisy * seen, RANK, mask=seen, **options)))

    return restarted(fit, noisy, seen)


METHODS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "pursuit": ours,
    "pyttb gcp_opt": pyttb,
    "TensorLy parafac": tensorly,
}


def relative(model: np.ndarray, target: np.ndarray, where: np.ndarray) -> float:
    return float(np.linalg.norm((model - target)[where]) / np.linalg.norm(target[where]))


def main() -> None:
    logging.disable(logging.WARNING)  # pyttb reports every copy it makes
    print(f"{'problem':>8}  {'method':18}{'held-out':>10}{'truth':>10}{'seconds':>10}")
    for seed in range(PROBLEMS):
        truth, noisy, seen = problem(seed)
        models, seconds = {}, {name: [] for name in METHODS}
        for _ in range(REPETITIONS):
            for name, method in METHODS.items():
                began = time.process_time()
                try:
                    models[name] = method(noisy, seen)
                except ImportError:
                    continue
                seconds[name].append(time.process_time() - began)
        for name, model in models.items():
            errors = relative(model, noisy, ~seen), relative(model, truth, ~seen)
            print(f"{seed:8}  {name:18}{errors[0]:10.5f}{errors[1]:10.5f}{np.median(seconds[name]):10.3f}")


if __name__ == "__main__":
    main()
