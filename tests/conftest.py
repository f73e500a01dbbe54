"""Settings and problems that several test files share."""

import faulthandler
import os
import signal
import sys

import numpy as np
import pytest
from hypothesis import settings

if folder := os.environ.get("PURSUIT_FOLDER"):  # tests of a copy: of a mutant, or of what another compiler built
    sys.meta_path[:] = [finder for finder in sys.meta_path if "ScikitBuild" not in type(finder).__name__]
    sys.path.insert(0, folder)

settings.register_profile("pursuit", deadline=None, derandomize=True, max_examples=60, print_blob=True)
settings.load_profile("pursuit")


SECONDS = 600
"""No test takes as long; one that does ends its process, which says where each thread stands."""


def pytest_configure(config):
    config.stash[STDERR] = os.fdopen(os.dup(sys.__stderr__.fileno()), "w")  # before pytest captures it


STDERR = pytest.StashKey()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    faulthandler.dump_traceback_later(SECONDS, exit=True, file=item.config.stash[STDERR])
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.fixture
def ctrl_c():
    """SIGINT raises KeyboardInterrupt, also in a process that was started to ignore it: a job in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def rng():
    return np.random.default_rng(12345)


def sparse_regression(seed, m=500, n=2000, k=30, noise=0.05):
    """A Gaussian dictionary, a target of k of its columns with noise, and the coefficients."""
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((m, n))
    coef = np.zeros(n)
    coef[rng.choice(n, k, replace=False)] = rng.standard_normal(k)
    y = D @ coef
    return D, y + noise * np.linalg.norm(y) / np.sqrt(m) * rng.standard_normal(m), coef
