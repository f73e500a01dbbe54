"""`encode` of recordings: the kernels against the definition, blocks against the whole, and the Lasso's gap."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pursuit as ps
from pursuit.arrays import Space
from pursuit.coding import events as event_module
from pursuit.coding.events import Rules, read_rules
from pursuit.coding.reference_events import plain_events

METHODS = [
    {"method": "mp"}, {"method": "omp"}, {"method": "nnomp"}, {"method": "mp", "prior": 0.5, "bounds": (0.3, 1.5)},
    {"method": "mp", "prior": np.inf}, {"method": "mp", "bounds": (0, np.inf), "refractory": 3},
]  # fmt: skip


def window(rng, kind):
    """A few templates, and the shape of a signal: recordings of one or several channels, and pictures."""
    count, width = int(rng.integers(1, 6)), int(rng.integers(1, 9))
    height, length = int(rng.integers(1, 4)), int(rng.integers(width, 150))
    if kind == "recording":
        return rng.standard_normal((count, width)), (length,)
    if kind == "channels":
        channels = int(rng.integers(1, 4))
        templates = rng.standard_normal((count, channels, width)) * (rng.random((count, channels, 1)) < 0.6)
        templates[:, 0] += rng.standard_normal((count, width))
        return templates, (channels, length)
    templates = rng.standard_normal((count, height, width))
    shape = (int(rng.integers(height + 1, 10)), int(rng.integers(width, 30)))
    return (templates, shape) if kind == "picture" else (templates[:, None].repeat(2, axis=1), (2, *shape))


def signal(A, rng, count, weights=None):
    y = np.zeros(A.shape) if weights else 0.05 * rng.standard_normal(A.shape)
    for _ in range(count):
        w = rng.choice(weights) if weights else rng.uniform(0.5, 2)
        y = A.sample(rng).add_to(Space.of(y), y, float(w))
    return y


def plain(A, y, threshold, limit, options):
    amplitudes = tuple(options.get(name) for name in ("prior", "bounds", "refractory"))
    return plain_events(A, y, read_rules(threshold, limit, options["method"], None, False, amplitudes)).sorted()


def assert_same(a, b, tolerance=1e-7):
    np.testing.assert_array_equal(a.template, b.template)
    np.testing.assert_array_equal(a.position, b.position)
    np.testing.assert_allclose(a.weight, b.weight, atol=tolerance)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["recording", "channels", "picture", "colours"]),
    st.sampled_from(METHODS),
)
def test_events_are_those_of_the_plain_pursuit(seed, kind, options):
    rng = np.random.default_rng(seed)
    templates, shape = window(rng, kind)
    rank = None if rng.random() < 0.5 else 2
    A = ps.Convolutional(templates, shape=shape, stride=int(rng.choice([1, 1, 2, 3])), rank=rank)
    options = options if A.axes == 1 else {name: o for name, o in options.items() if name != "refractory"}
    y, threshold, limit = (
        signal(A, rng, int(rng.integers(0, 12))),
        float(rng.uniform(0.02, 0.5)),
        int(rng.integers(0, 30)),
    )
    assert_same(plain(A, y, threshold, limit, options), ps.encode(A, y, threshold=threshold, atoms=limit, **options))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_ties_go_to_the_first_position_and_then_to_the_first_template(seed):
    rng = np.random.default_rng(seed)
    width = int(rng.choice([1, 2, 4]))  # norms are powers of two and samples +-1: nothing is ever rounded
    A = ps.Convolutional(
        rng.choice([-1.0, 1.0], (int(rng.integers(1, 6)), width)), shape=(int(rng.integers(width, 200)),)
    )
    y = signal(A, rng, 8, weights=[1, 2, 3])
    assert_same(plain(A, y, 0.25, 20, METHODS[0]), ps.encode(A, y, method="mp", threshold=0.25, atoms=20), 0)


def test_float32_finds_the_same_events():
    rng = np.random.default_rng(0)
    A = ps.Convolutional(rng.standard_normal((4, 2, 9)), shape=(2, 500))
    y = signal(A, rng, 20)
    for method in ("mp", "omp"):
        exact = ps.encode(A, y, method=method, threshold=1.0)
        assert_same(exact, ps.encode(A, y, method=method, threshold=1.0, dtype="float32"), 1e-4)


def test_silence_has_no_events_and_a_template_may_fill_the_recording():
    A = ps.Convolutional([[1.0, 2.0, 3.0]])
    assert len(ps.encode(A, np.zeros(50), threshold=0.0, method="mp")) == 0
    assert len(ps.encode(A, np.zeros(50), method="lasso", penalty=1.0)) == 0
    e = ps.encode(A, np.array([2.0, 4.0, 6.0]), threshold=0.1)
    assert list(e.position) == [0]
    assert e.weight == pytest.approx([2.0])


def test_a_second_copy_of_a_template_is_never_used():
    rng = np.random.default_rng(1)
    t = rng.standard_normal(7)
    A = ps.Convolutional([t, t, t], shape=(100,))
    y = signal(A, rng, 6)
    for method in ("mp", "omp", "nnomp"):
        assert set(ps.encode(A, y, method=method, threshold=0.3).template) == {0}


@pytest.mark.parametrize(("method", "threshold", "count"), [("omp", 1e-9, 40), ("omp", 0.0, 74), ("nnomp", 1e-4, 138)])
def test_refits_of_nearly_dependent_translates_end(method, threshold, count):
    rng, t = np.random.default_rng(0), np.arange(40)
    T = np.stack([np.exp(-0.5 * ((t - 15) / s) ** 2) for s in (2, 3, 4, 5)])
    y = rng.standard_normal(60 if method == "omp" else 300)
    A = ps.Convolutional(T if method == "omp" else np.concatenate([T, -T]), shape=y.shape)
    e = ps.encode(A, y, method=method, threshold=threshold)
    r = y - A.synthesize(e)
    D = np.stack(
        [
            A.atom(int(p) * len(A.templates.squares) + int(k)).vector
            for k, p in zip(e.template, e.position, strict=True)
        ],
        axis=1,
    )
    slope = D.T @ r / np.linalg.norm(D, axis=0)
    assert count // 2 < len(e) < 2 * count
    assert np.abs(slope).max() < 1e-7 * np.linalg.norm(y)


def test_refits_without_an_end_are_refused():
    t = np.arange(30)
    T = np.stack([np.exp(-0.5 * ((t - 12) / s) ** 2) for s in (3, 4)])
    A = ps.Convolutional(np.concatenate([T, T, -T]), shape=(300,))
    with pytest.raises(ValueError, match="omp finds no end"):
        ps.encode(A, np.random.default_rng(3).standard_normal(300), threshold=0.0)


# ---------------------------------------------------------------------- blocks


def long_recording(dtype=np.float64):
    rng = np.random.default_rng(2)
    A = ps.Convolutional(rng.standard_normal((3, 2, 12)), shape=(2, 6000))
    return A, signal(A, rng, 150).astype(dtype)


@pytest.mark.parametrize("options", METHODS[:5], ids=str)
def test_blocks_and_threads_give_the_answer_of_one_block(options):
    A, y = long_recording()
    whole = ps.encode(A, y, threshold=0.9, block=10**6, **options)
    blocks = ps.encode(A, y, threshold=0.9, block=100, n_jobs=2, halo=60, **options)
    assert len(whole) > 100
    assert_same(whole, blocks, 1e-6)
    assert len(blocks.unverified) == 0


def test_seams_at_which_blocks_disagree_are_listed():
    A = ps.Convolutional([[1.0, 3.0, 1.0], [1.0, 1.0, 1.0]], shape=(400,))
    rng = np.random.default_rng(3)
    y = rng.standard_normal(400)  # everything overlaps
    e = ps.encode(A, y, method="mp", threshold=1e-4, block=10, halo=3)
    whole = ps.encode(A, y, method="mp", threshold=1e-4)
    differing = {s for s in range(10, 398, 10) if sorted(whole.position[np.abs(whole.position - s) < 3].tolist())
                 != sorted(e.position[np.abs(e.position - s) < 3].tolist())}  # fmt: skip
    assert differing
    assert differing & set(e.unverified.tolist())


def test_every_form_of_a_recording_gives_the_same_events(tmp_path):
    A, y = long_recording(np.float32)
    np.save(tmp_path / "y.npy", y)
    np.save(tmp_path / "time_first.npy", y.T.copy())
    forms = [
        np.load(tmp_path / "y.npy", mmap_mode="r"), np.load(tmp_path / "time_first.npy", mmap_mode="r").T,
        y.astype(np.float64), lambda start, stop: y[:, start:stop],
    ]  # fmt: skip
    zarr, da = pytest.importorskip("zarr"), pytest.importorskip("dask.array")
    forms += [zarr.array(y, chunks=(1, 1000)), da.from_array(y, chunks=(2, 700))]
    expected = ps.encode(A, y, method="mp", threshold=0.9, block=500)
    for form in forms:
        assert_same(expected, ps.encode(A, form, method="mp", threshold=0.9, block=500), 1e-4)


def test_integers_are_read_as_numbers():
    A = ps.Convolutional([[1.0, 2.0, 1.0]])
    y = np.zeros(100, np.int16)
    y[[10, 11, 12]] = 3, 6, 3
    assert ps.encode(A, y, threshold=1.0).weight == pytest.approx([3.0])


def test_a_killed_call_goes_on_from_its_checkpoint(tmp_path):
    A, y = long_recording()
    path, calls = tmp_path / "events", []

    def read(start, stop):
        calls.append(start)
        if len(calls) == 8:
            raise KeyboardInterrupt
        return y[:, start:stop]

    options = {"method": "mp", "threshold": 0.9, "block": 500, "n_jobs": 1, "dtype": np.float64, "checkpoint": path}
    with pytest.raises(KeyboardInterrupt):
        ps.encode(A, read, **options)
    with path.open("ab") as file:
        file.write(b"half a record")
    before = len(calls)
    events = ps.encode(A, read, **options)
    assert len(calls) - before == 12 - 7
    assert_same(events, ps.encode(A, y, method="mp", threshold=0.9), 1e-9)
    with pytest.raises(ValueError, match="checkpoint"):
        ps.encode(A, read, **(options | {"threshold": 0.8}))


def test_products_of_templates_are_dropped_and_made_again():
    A, y = long_recording()
    few = ps.Convolutional(np.stack([A.templates.dense(k)[:, 0] for k in range(3)]), shape=A.shape, memory=0)
    assert_same(ps.encode(A, y, threshold=0.9, block=500), ps.encode(few, y, threshold=0.9, block=500, n_jobs=2), 1e-9)


def test_signals_of_other_lengths_share_the_products_of_templates():
    A, y = long_recording()
    other = A.on((2, 3000))
    assert len(ps.encode(A, y, threshold=0.9)) > 0
    made = A.kernel(np.float64).rows_made
    assert len(ps.encode(other, y[:, :3000], threshold=0.9)) > 0
    assert other.kernel(np.float64).rows_made == made == 3


# ---------------------------------------------------------------------- the Lasso


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("kind", ["recording", "channels", "picture", "colours"])
def test_the_lasso_is_that_of_the_dictionary_of_all_translates(kind, positive):
    rng = np.random.default_rng(4)
    templates, _ = window(rng, kind)
    A = ps.Convolutional(templates, shape={1: (60,), 2: (templates.shape[1], 60)}.get(templates.ndim - 1, (2, 8, 15)))
    if kind == "picture":
        A = ps.Convolutional(templates, shape=(8, 15))
    y = signal(A, rng, 9)
    D = np.stack([A.atom(i).vector.ravel() for i in range(A.n)], axis=1)
    penalty = 0.2 * float(np.abs(A.scores(y)).max())
    codes, gaps = ps.encode(D, y.ravel()[None], method="lasso", penalty=penalty, positive=positive, gaps=True)
    for block in (None, 20):
        e = ps.encode(A, y, method="lasso", penalty=penalty, positive=positive, block=block)
        r = y - A.synthesize(e)
        value = 0.5 * np.vdot(r, r) + penalty * np.abs(e.weight).sum()
        x = codes.toarray()[0]
        best = 0.5 * np.sum((y.ravel() - D @ x) ** 2) + penalty * np.abs(x).sum()
        assert 0 <= e.gap <= 1e-8 * value
        assert value - best <= e.gap + gaps[0]
        assert best - value <= gaps[0] + 1e-12 * value


def test_the_gap_is_true_of_weights_that_are_not_the_minimum():
    from pursuit.coding.event_lasso import lasso_gap

    A, y = long_recording()
    recording = event_module.Recording(A, y, np.float64)
    blocks = event_module.Blocks.choose(recording, Rules("lasso", penalty=3.0), 700, None)
    e = ps.encode(A, y, method="lasso", penalty=3.0)
    best, _ = lasso_gap(blocks, e)
    worse = replace(e, weight=0.9 * e.weight)
    value, gap = lasso_gap(blocks, worse)
    assert value - best <= gap < value


def test_the_lasso_ends_where_weights_are_large_beside_its_penalty():
    y = np.random.default_rng(0).standard_normal(60)
    A = ps.Convolutional([[1.0, 2.0, 1.0]], shape=y.shape)  # whose translates nearly depend on each other
    e = ps.encode(A, y, method="lasso", penalty=1e-9)
    r = y - A.synthesize(e)
    assert e.gap <= 1e-6 * (np.vdot(y, y) + np.vdot(r, r))


# ---------------------------------------------------------------------- refusals

A1 = ps.Convolutional([[1.0, 2.0]])
WRONG = [
    ((np.ones(9),), {}, "threshold and atoms are missing"),
    ((np.ones(9),), {"threshold": -1.0}, "threshold is"),
    ((np.ones(9),), {"threshold": 1.0, "method": "ols"}, "method is"),
    ((np.ones(9),), {"threshold": 1.0, "prior": 1.0}, "prior, bounds and refractory"),
    ((np.ones(9),), {"threshold": 1.0, "method": "mp", "prior": -1.0}, "prior is"),
    ((np.ones(9),), {"threshold": 1.0, "method": "mp", "bounds": (2, 1)}, "bounds is"),
    ((np.ones(9),), {"threshold": 1.0, "method": "mp", "refractory": 0.5}, "refractory is"),
    ((np.ones(9),), {"method": "lasso"}, "penalty belongs"),
    ((np.ones(9),), {"method": "lasso", "penalty": 0.0}, "penalty is"),
    ((np.ones(9),), {"threshold": 1.0, "penalty": 1.0}, "penalty belongs"),
    ((np.ones(9),), {"threshold": 1.0, "positive": True}, "positive belongs"),
    ((np.ones(9),), {"threshold": 1.0, "gram": np.eye(2)}, "gram does not belong"),
    ((np.ones(9),), {"threshold": 1.0, "block": 0}, "block is"),
    ((np.ones(9),), {"threshold": 1.0, "halo": -1}, "halo is"),
    ((np.ones(9),), {"atoms": 3, "block": 4}, "atoms counts"),
    ((np.r_[np.ones(8), np.nan],), {"threshold": 1.0}, "NaN"),
    ((np.ones((3, 9)),), {"threshold": 1.0}, "a signal has shape"),
    ((np.ones(1),), {"threshold": 1.0}, "the recording has 1 samples"),
    ((np.random.default_rng(0).standard_normal(400),), {"threshold": 0.0, "method": "mp"}, "mp finds no end"),
    ((lambda a, b: np.ones(b - a),), {"threshold": 1.0}, "is a function"),
    ((np.ones(9) + 1j,), {"threshold": 1.0}, "recording is"),
]


@pytest.mark.parametrize(("args", "options", "message"), WRONG, ids=[f"{m} {i}" for i, (*_, m) in enumerate(WRONG)])
def test_wrong_calls_are_refused_in_one_sentence(args, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ps.encode(A1, *args, **options)


def test_options_of_recordings_are_refused_for_matrices():
    with pytest.raises(ValueError, match="threshold is 1"):
        ps.encode(np.eye(3), np.ones((2, 3)), atoms=1, threshold=1.0)


@pytest.mark.parametrize("options", [{"l2": 5.0}, {"prices": np.ones(1)}, {"joint": True}], ids=str)
def test_what_recordings_do_not_serve_is_refused(options):
    y = np.concatenate([np.zeros(10), np.hanning(9), np.zeros(10)])
    with pytest.raises(ValueError, match="does not belong to recordings"):
        ps.encode(ps.Convolutional([np.hanning(9)]), y, method="lasso", penalty=0.1, **options)
    with pytest.raises(ValueError, match="masked array"):
        ps.encode(ps.Convolutional([np.hanning(9)]), np.ma.masked_array(y, np.arange(29) > 20), threshold=0.5)
    with pytest.raises(ValueError, match="nonnegative"):
        ps.learn(y, templates=1, length=9, convolutional=True, code={"threshold": 0.5}, nonnegative=True)
