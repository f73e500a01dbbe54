"""Indexed: the index proposes, the dictionary proves."""

import sys
from itertools import islice, pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import pursuit as ps


class Fake:
    """An index that finds the same few columns whatever it is asked."""

    metric_type = 0

    def __init__(self, shape, found):
        (self.d, self.ntotal), self.found, self.calls = shape, np.array(found), 0

    def search(self, queries, k):
        self.calls += 1
        assert queries.dtype == np.float32
        return None, np.tile(self.found, (len(queries), 1))


@pytest.fixture
def dictionary(rng):
    return ps.Dictionary(rng.standard_normal((30, 400)))


@pytest.mark.parametrize("domain", [ps.lin, lambda A: ps.conv(3 * A), lambda A: ps.conv(-3 * A), ps.cone])
def test_the_gap_never_rests_on_the_index_however_bad_it_is(dictionary, domain):
    f = ps.LeastSquares(dictionary.D[:, :20].sum(axis=1))
    index = Fake(dictionary.D.shape, [5, -1])  # -1: faiss found no more
    r = ps.minimize(f, domain(dictionary), ps.FullyCorrective(), oracle=ps.Indexed(dictionary, index))
    exact = ps.minimize(f, domain(dictionary), ps.FullyCorrective())
    assert index.calls > 0
    assert r.lower <= exact.value + 1e-9
    assert r.value == pytest.approx(exact.value, abs=1e-5)
    assert r.oracle_calls + r.cached == r.iterations + 1 + (r.oracle_calls + r.cached > r.iterations + 1)


def test_answers_of_the_index_do_not_enter_the_certificate(dictionary):
    f = ps.LeastSquares(dictionary.D[:, :20].sum(axis=1))
    oracle = ps.Indexed(dictionary, Fake(dictionary.D.shape, np.arange(400)), K=1e9)
    states = list(islice(ps.iterate(f, ps.conv(3 * dictionary), ps.Plain(ps.ShortStep()), oracle=oracle), 20))
    assert states[-1].cached > 10
    proved = [(s.lower, s.oracle_calls) for s in states]
    assert all(a[0] == b[0] for a, b in pairwise(proved) if a[1] == b[1])


def test_answers_of_the_index_and_of_the_dictionary_are_counted_apart(dictionary):
    everything = Fake(dictionary.D.shape, np.arange(400))  # a perfect index
    f, domain = ps.LeastSquares(dictionary.D[:, :20].sum(axis=1)), ps.conv(3 * dictionary)
    plain = ps.minimize(f, domain, ps.FullyCorrective())
    r = ps.minimize(f, domain, ps.FullyCorrective(), oracle=ps.Indexed(dictionary, everything))
    assert 0 < r.oracle_calls < plain.oracle_calls
    assert everything.calls >= r.cached > 0
    assert r.gap <= 1e-6 * abs(r.value)


def test_a_perfect_index_that_is_always_trusted_gives_matching_pursuit(dictionary):
    everything = Fake(dictionary.D.shape, np.arange(400))
    f, stop = ps.LeastSquares(dictionary.D[:, :20].sum(axis=1)), ps.Stop(atoms=10)
    r = ps.minimize(f, ps.lin(dictionary), oracle=ps.Indexed(dictionary, everything, K=1e9), stop=stop)
    assert [a.source for a in r.atoms] == [a.source for a in ps.minimize(f, ps.lin(dictionary), stop=stop).atoms]
    assert r.oracle_calls <= 3


def test_faiss_finds_most_answers_of_a_large_dictionary(rng):
    pytest.importorskip("faiss", reason="needs pursuit[index]")
    A = ps.Dictionary(rng.standard_normal((30, 8000)).astype(np.float32))
    f = ps.LeastSquares(A.D[:, :20].sum(axis=1))
    r = ps.minimize(f, ps.lin(A), oracle=ps.Indexed(A, K=4.0), stop=ps.Stop(atoms=15))
    assert r.cached > r.oracle_calls
    assert r.check().gap == pytest.approx(r.gap, rel=1e-3) or r.check().gap < r.gap


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"A": 3}, "A is 3"),
        ({"index": 3}, "index is 3"),
        ({"index": Fake((30, 399), [0])}, "index holds 399 vectors"),
        ({"K": 1.0}, "K is 1.0"),
    ],
)
def test_what_cannot_be_indexed_is_refused_in_one_sentence(dictionary, arguments, words):
    with pytest.raises((TypeError, ValueError), match=words):
        ps.Indexed(**({"A": dictionary, "index": Fake((30, 400), [0])} | arguments))


def test_an_index_of_distances_and_a_domain_of_other_atoms_are_refused(dictionary):
    index = Fake((30, 400), [0])
    with pytest.raises(ValueError, match="the domain is made of"):
        ps.minimize(ps.LeastSquares(np.ones(30)), ps.lin(ps.SignedBasis(30)), oracle=ps.Indexed(dictionary, index))
    index.metric_type = 1
    with pytest.raises(ValueError, match="inner products"):
        ps.Indexed(dictionary, index)


def test_without_faiss_one_sentence_says_what_to_install(dictionary, monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ImportError, match=r"install pursuit\[index\]"):
        ps.Indexed(dictionary)


@pytest.mark.parametrize(("columns", "cells"), [(1, 0), (38, 0), (679, 0), (680, 17), (40_000, 800)])
def test_few_columns_are_searched_one_by_one_and_need_no_training(columns, cells, monkeypatch):
    """faiss trains cells on 39 vectors each, and warns where there are fewer."""

    class Index:
        metric_type = 0

        def __init__(self, *arguments):
            self.arguments, self.trained, self.ntotal = arguments, False, 0
            self.d = arguments[0] if len(arguments) == 1 else arguments[1]

        def train(self, rows):
            assert len(rows) >= 39 * self.arguments[2]
            self.trained = True

        def add(self, rows):
            self.ntotal += len(rows)

        def search(self, queries, k):
            raise NotImplementedError

    faiss = SimpleNamespace(IndexFlatIP=Index, IndexIVFFlat=Index, METRIC_INNER_PRODUCT=0)
    monkeypatch.setitem(sys.modules, "faiss", faiss)
    index = ps.Indexed(ps.Dictionary(np.ones((2, columns)))).index
    assert (index.trained, index.arguments[2] if index.trained else 0) == (cells > 0, cells)
