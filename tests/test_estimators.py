"""Estimators: scikit-learn's contract, data frames, sparse input, several targets, and bad input in one sentence."""

import numpy as np
import pytest
from sklearn.utils._test_common.instance_generator import PER_ESTIMATOR_CHECK_PARAMS
from sklearn.decomposition import SparseCoder as TheirSparseCoder
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from pursuit.estimators import (
    OrthogonalMatchingPursuit,
    OrthogonalMatchingPursuitCV,
    SparseCoder,
    orthogonal_mp,
    orthogonal_mp_gram,
    sparse_encode,
)

contract = pytest.mark.filterwarnings("default")  # the checks are written for warnings that are no errors


@contract
@parametrize_with_checks([OrthogonalMatchingPursuit(), OrthogonalMatchingPursuitCV(cv=3)])
def test_check_estimator(estimator, check):
    check(estimator)


def coder_checks():
    """As scikit-learn checks its own coder: a check comes with a dictionary of as many features as its data have."""
    special = PER_ESTIMATOR_CHECK_PARAMS[TheirSparseCoder]
    usual = SparseCoder(np.random.default_rng(0).standard_normal((5, 3)))
    for _, check in estimator_checks_generator(usual):
        name = getattr(check, "func", check).__name__
        settings = special.get(name, {})
        for each in settings if isinstance(settings, list) else [settings]:
            yield pytest.param(SparseCoder(**({"dictionary": usual.dictionary} | each)), check, id=name)


@contract
@pytest.mark.parametrize(("estimator", "check"), coder_checks())
def test_check_sparse_coder(estimator, check):
    check(estimator)
