"""Derivatives of solutions, against finite differences of solutions."""

import numpy as np
import pytest

import pursuit as ps

RNG = np.random.default_rng(3)
X, Y = RNG.standard_normal((12, 20)), RNG.standard_normal(12)
SMALL = RNG.standard_normal((12, 5))
LABELS = np.sign(Y)
ROWS, COLS = np.nonzero(RNG.random((7, 6)) < 0.85)
MATRIX = RNG.standard_normal((7, 3)) @ RNG.standard_normal((3, 6)) + 0.1 * RNG.standard_normal((7, 6))
SQUARE = RNG.standard_normal((6, 6))
STOP = ps.Stop(gap=1e-26, rgap=1e-15, iterations=4000)


class RealLabels(ps.Logistic):
    """The logistic loss of any real labels."""

    def __init__(self, y):
        super().__init__(np.sign(y))
        self.y = np.asarray(y, dtype=float)
        self.dual_range = -10.0 + 0 * self.y, 10.0 + 0 * self.y

    def hessian(self, x):
        p = 1 / (1 + np.exp(-self.y * x))
        from pursuit.metrics import Diagonal

        return Diagonal(self.y**2 * p * (1 - p))

    def conjugate(self, u):
        return None


CASES = {  # a problem as a function of its data, its factor and its dictionary, and these
    "hull": (lambda y, c, D: (ps.LeastSquares(y), ps.conv(c * ps.Dictionary(D, signed=True))), Y, 0.6, X),
    "hull of a simplex": (lambda y, c, D: (ps.LeastSquares(y), ps.conv(c * ps.Dictionary(D))), Y, 1.3, X),
    "hull, Huber": (lambda y, c, D: (ps.Huber(y, 0.7), ps.conv(c * ps.Dictionary(D, signed=True))), Y, 0.5, X),
    "hull, Poisson": (
        lambda y, c, D: (ps.Poisson(y), ps.conv(c * ps.Dictionary(D, signed=True))),
        1 + np.abs(np.round(3 * Y)),
        0.8,
        X,
    ),
    "hull, labels": (lambda y, c, D: (RealLabels(y), ps.conv(c * ps.Dictionary(D, signed=True))), LABELS, 0.9, X),
    "hull, quadratic": (
        lambda y, c, D: (ps.Quadratic(np.diag(np.linspace(1, 3, 12)), y), ps.conv(c * ps.Dictionary(D, signed=True))),
        Y,
        0.4,
        X,
    ),
    "cone": (lambda y, c, D: (ps.LeastSquares(y), ps.cone(c * ps.Dictionary(D))), Y, 1.0, X),
    "span": (lambda y, c, D: (ps.LeastSquares(y), ps.lin(c * ps.Dictionary(D))), Y, 2.0, SMALL),
    "penalty": (lambda y, c, D: (ps.LeastSquares(y), ps.penalty(c * ps.Dictionary(D, signed=True))), Y, 1.5, X),
    "basis": (lambda y, c, D: (ps.LeastSquares(y), ps.conv(c * ps.SignedBasis(12))), Y, 3.0, None),
    "ridge": (
        lambda y, c, D: (
            ps.Ridge(ps.LeastSquares(y), 12),
            ps.conv(c * ps.Dictionary(np.vstack([D, 0.3 * np.eye(20)[:12]]), signed=True)),
        ),
        Y,
        0.6,
        X,
    ),
    "nuclear": (lambda y, c, D: (ps.LeastSquares(y), ps.conv(c * ps.RankOne((7, 6)))), MATRIX, 12.0, None),
    "observed": (
        lambda y, c, D: (ps.LeastSquares(y), ps.conv(c * ps.RankOne((7, 6)).at(ROWS, COLS))),
        MATRIX[ROWS, COLS],
        12.0,
        None,
    ),
    "nuclear, Poisson": (
        lambda y, c, D: (ps.Poisson(y), ps.conv(c * ps.RankOne((7, 6)))),
        1 + np.round(np.abs(2 * MATRIX)),
        8.0,
        None,
    ),
    "spectrahedron": (
        lambda y, c, D: (ps.LeastSquares(y), ps.conv(c * ps.Spectrahedron(6))),
        SQUARE + SQUARE.T,
        4.0,
        None,
    ),
}


def solved(case, dy=0.0, dc=0.0, dD=None):
    make, y, c, D = CASES[case]
    return ps.minimize(*make(y + dy, c + dc, D if dD is None else D + dD), stop=STOP)


def relative_error(found, expected):
    return np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-8)


def polished(r):
    """x after Newton steps on its face: that of a run is only as accurate as rounding in f allows."""
    return ps.differentiate(r).face.at.x.reshape(r.x.shape)


def difference(case, h=1e-4, what=polished, **direction):
    """A central difference of fourth order."""
    at = {t: what(solved(case, **{name: t * h * d for name, d in direction.items()})) for t in (-2, -1, 1, 2)}
    return (8 * (at[1] - at[-1]) - (at[2] - at[-2])) / (12 * h)


@pytest.mark.parametrize("case", CASES)
def test_derivatives_of_x_are_those_of_finite_differences(case):
    d, (_, y, _, D) = ps.differentiate(solved(case)), CASES[case]
    rng = np.random.default_rng(1)
    assert d.stable, d.reason
    dy = rng.standard_normal(y.shape)
    if case == "spectrahedron":
        dy = dy + dy.T
    assert relative_error(d.jvp(y=dy).x, difference(case, dy=dy)) <= 1e-6
    assert relative_error(d.jvp(radius=1.0).x + 1e-3, difference(case, dc=1.0) + 1e-3) <= 1e-6
    if D is not None and case != "ridge":
        dD = rng.standard_normal(D.shape)
        assert relative_error(d.jvp(dictionary=dD).x, difference(case, dD=dD)) <= 1e-6


@pytest.mark.parametrize("case", CASES)
def test_the_two_products_are_transposes(case):
    d, (_, y, _, D), rng = ps.differentiate(solved(case)), CASES[case], np.random.default_rng(2)
    v = rng.standard_normal(d.result.x.shape)
    dy, dg, dr = rng.standard_normal(y.shape), rng.standard_normal(v.shape), 0.7
    back, expected = d.vjp(v), 0.0
    forward = {"y": dy, "gradient": dg, "radius": dr}
    expected = np.sum(back.y * dy) + np.sum(back.gradient * dg) + back.radius * dr
    if D is not None and case != "ridge":
        forward["dictionary"] = rng.standard_normal(D.shape)
        expected += np.sum(back.dictionary * forward["dictionary"])
    assert np.sum(v * d.jvp(**forward).x) == pytest.approx(expected, rel=1e-8)


# ------------------------------------------------------------------ weights, coefficients, sums


@pytest.mark.parametrize("case", ["hull", "cone", "span", "penalty", "hull, Poisson"])
def test_weights_and_coefficients_have_derivatives_too(case):
    d, (_, y, _, D), rng = ps.differentiate(solved(case)), CASES[case], np.random.default_rng(4)
    dy, dD, v = rng.standard_normal(y.shape), rng.standard_normal(D.shape), rng.standard_normal(len(d.result.weights))
    tangent = d.jvp(y=dy, radius=0.3, dictionary=dD)
    expected = difference(case, what=lambda r: r.coef, dy=dy, dc=0.3, dD=dD)
    assert relative_error(tangent.coef, expected) <= 1e-6
    back = d.vjp(weights=v)
    total = np.sum(back.y * dy) + 0.3 * back.radius + np.sum(back.dictionary * dD)
    assert v @ tangent.weights == pytest.approx(total, rel=1e-8)


def test_the_coefficients_of_matrices_have_derivatives_at_all_entries():
    d, dy = ps.differentiate(solved("observed")), np.random.default_rng(5).standard_normal(len(ROWS))
    m, n = np.indices((7, 6)).reshape(2, -1)

    def whole(r):
        own = ps.differentiate(r).face
        L, R = own.coordinates.split(own.z)
        return (L @ R.T).ravel()

    assert relative_error(d.jvp(y=dy).coef.at(m, n), difference("observed", what=whole, dy=dy)) <= 1e-6
    assert d.jvp(y=dy).weights is None


def test_summands_change_one_by_one():
    f = ps.LeastSquares(Y)

    def solve(dc=(0.0, 0.0, 0.0), dD=0.0):
        hull, span = ps.Dictionary(X[:, :8] + dD, signed=True), ps.Dictionary(SMALL[:, :2])
        domain = (
            ps.conv((0.3 + dc[0]) * hull) + ps.lin((1 + dc[1]) * span) + ps.penalty((0.5 + dc[2]) * ps.SignedBasis(12))
        )
        return ps.minimize(f, domain, stop=STOP)

    d, h, rng = ps.differentiate(solve()), 1e-5, np.random.default_rng(0)
    assert d.stable, d.reason
    for rates in np.eye(3):
        expected = (solve(h * rates).x - solve(-h * rates).x) / (2 * h)
        assert np.abs(d.jvp(radius=rates).x - expected).max() <= 1e-7
    dD, v = rng.standard_normal((12, 8)), rng.standard_normal(12)
    expected = (solve(dD=h * dD).x - solve(dD=-h * dD).x) / (2 * h)
    assert np.abs(d.jvp(dictionary=[dD, None, None]).x - expected).max() <= 1e-6
    back = d.vjp(v)
    assert len(back.radius) == 3 and back.dictionary[2] is None
    assert np.sum(back.dictionary[0] * dD) == pytest.approx(v @ d.jvp(dictionary=[dD, None, None]).x, rel=1e-9)
    with pytest.raises(ValueError, match="give one, or None, for each of the 3 summands"):
        d.jvp(radius=1.0)


def test_over_a_span_that_fits_the_data_the_solution_still_moves_in_all_of_it():
    y = SMALL[:, 0] * 2.0  # one atom is enough for it
    r = ps.minimize(ps.LeastSquares(y), ps.lin(ps.Dictionary(SMALL)), ps.FullyCorrective())
    d, dy = ps.differentiate(r), np.random.default_rng(0).standard_normal(12)
    assert len(r.atoms) == 1 and d.stable
    np.testing.assert_allclose(d.jvp(y=dy).x, SMALL @ np.linalg.lstsq(SMALL, dy)[0], atol=1e-12)
    assert d.jvp(y=dy).weights is None and d.jvp(y=dy).coef is None


def test_dependent_atoms_leave_x_its_derivative_and_weights_none():
    D = np.column_stack([X[:, :3], X[:, 0] + X[:, 1] - X[:, 2]])  # four atoms in a plane: a quadrilateral
    weights = np.array([0.4, 0.3, 0.2, 0.1])
    inside = D @ weights
    normal = np.linalg.svd((D - D[:, :1]).T)[2][-1]
    f, A = ps.LeastSquares(inside + 3.0 * normal), ps.Dictionary(D)
    r = ps.minimize(f, ps.conv(A), start=(weights, [A.atom(i) for i in range(4)]), stop=STOP)
    assert len(r.atoms) == 4
    d, v = ps.differentiate(r), np.random.default_rng(0).standard_normal(12)
    basis = np.linalg.qr(D[:, 1:3] - D[:, :1])[0]
    assert "as good" in (d.reason or "as good")
    if d.stable:
        np.testing.assert_allclose(d.jvp(y=v).x, basis @ (basis.T @ v), atol=1e-9)
        with pytest.raises(ValueError, match="weights of this solution are not unique"):
            d.vjp(weights=np.ones(4))


def test_dependent_columns_have_no_derivative_in_the_dictionary():
    """Whichever way the columns move, the span gains a dimension, and the solution jumps."""
    D = np.column_stack([SMALL, SMALL[:, 0] + SMALL[:, 1]])
    d, rng = (
        ps.differentiate(ps.minimize(ps.LeastSquares(Y), ps.lin(ps.Dictionary(D)), stop=STOP)),
        np.random.default_rng(0),
    )
    move = rng.standard_normal(D.shape)
    with pytest.raises(ValueError, match="depend on each other, so that it jumps; leave dictionary= out"):
        d.jvp(dictionary=move)
    back, dy = d.vjp(Y), rng.standard_normal(12)
    np.testing.assert_allclose(d.jvp(y=dy).x, SMALL @ np.linalg.lstsq(SMALL, dy)[0], atol=1e-12)
    assert back.dictionary is None and back.y is not None
    whole = ps.differentiate(ps.minimize(ps.LeastSquares(Y), ps.lin(ps.Dictionary(X)), stop=STOP))  # all of the space
    np.testing.assert_allclose(whole.jvp(dictionary=rng.standard_normal(X.shape)).x, 0.0, atol=1e-9)


# ------------------------------------------------------------------ where there is none

UNSTABLE = {
    "another atom": (
        ps.LeastSquares([1.0, 1.0, 0.2]),
        ps.conv(0.8 * ps.SignedBasis(3)),
        None,
        "hardly any weight|as good",
    ),
    "inside": (ps.LeastSquares([0.1, 0.0, 0.0]), ps.conv(ps.SignedBasis(3)), None, "as good|hardly any weight"),
    "kink of the cone": (ps.LeastSquares([1.0, 0.0, -1.0]), ps.cone(ps.SignedBasis(3)), None, "as good"),
    "threshold": (ps.LeastSquares([3.0, 1.0, 0.0]), ps.penalty(1.0 * ps.SignedBasis(3)), None, "as good"),
    "kink of f": (ps.Huber([3.0, 0.0], 1.0), ps.conv(2.0 * ps.SignedBasis(2)), None, "no second derivative"),
    "not solved": (ps.LeastSquares(Y), ps.conv(0.6 * ps.Dictionary(X, signed=True)), 3, "not accurate on its face"),
    "flat": (
        ps.Quadratic(np.diag([1.0, 0, 0]), [-3.0, 0, 0]),
        ps.conv(ps.Dictionary(np.array([[1.0, 1], [0, 1], [0, 0]]))),
        None,
        "flat",
    ),
    "at infinity": (
        ps.Logistic([1, -1]),
        ps.cone(ps.Dictionary(np.array([[-1.0, 1], [1, 0]]))),
        None,
        "not accurate on its face",
    ),
    "flat at infinity": (ps.Logistic(LABELS), ps.lin(ps.Dictionary(X)), None, "flat"),
    "rank may grow": (ps.LeastSquares(np.diag([3.0, 1.0, 0.0])), ps.conv(2.0 * ps.RankOne((3, 3))), None, "as good"),
    "inside the ball": (
        ps.LeastSquares(np.diag([1.0, 0.0, 0.0])),
        ps.conv(2.0 * ps.RankOne((3, 3))),
        None,
        "not at its bound",
    ),
}


@pytest.mark.parametrize("name", UNSTABLE)
def test_a_solution_without_a_derivative_says_why(name):
    f, domain, iterations, words = UNSTABLE[name]
    if iterations is None:
        r = ps.minimize(f, domain, stop=STOP)
    else:
        r = ps.minimize(f, domain, ps.Plain(ps.OpenLoop()), stop=ps.Stop(iterations=iterations))
    if name == "another atom":  # put it exactly at the kink: x = (0.4, 0.4, 0), and a third atom without weight
        f = ps.LeastSquares([0.4 + 0.3, 0.4 + 0.3, 0.3])
        r = ps.minimize(f, domain, stop=STOP)
    if name == "flat":
        A = domain.A
        r = ps.minimize(f, domain, start=([0.5, 0.5], [A.atom(0), A.atom(1)]), stop=STOP)
    d = ps.differentiate(r)
    assert not d.stable
    assert any(word in d.reason for word in words.split("|")), d.reason
    assert d.reason in repr(d)
    for product in (lambda: d.jvp(radius=1.0), lambda: d.vjp(r.x)):
        with pytest.raises(ValueError, match="the solution has no derivative here: "):
            product()


def test_sets_and_functions_that_it_does_not_know_are_refused():
    ball = ps.minimize(ps.LeastSquares(Y), ps.conv(ps.Ball(12, 2)))
    with pytest.raises(TypeError, match="cannot list its atoms, so its faces are not known"):
        ps.differentiate(ball)
    own = ps.minimize(ps.Smooth(lambda x: float(x @ x), lambda x: 2 * x, L=2.0), ps.conv(ps.Simplex(3)))
    with pytest.raises(TypeError, match="has no Hessian"):
        ps.differentiate(own)
    basis = ps.differentiate(solved("basis"))
    with pytest.raises(TypeError, match="is no dense dictionary"):
        basis.jvp(dictionary=np.eye(12))
    with pytest.raises(ValueError, match=r"y has shape \(3,\); give an array of shape \(12,\)"):
        basis.jvp(y=np.ones(3))


# ------------------------------------------------------------------ PyTorch


def test_gradients_flow_through_a_solution_in_torch():
    torch = pytest.importorskip("torch")
    y, D = (torch.tensor(a, requires_grad=True) for a in (Y, X))
    radius, v = (
        torch.tensor(0.6, dtype=torch.float64, requires_grad=True),
        torch.linspace(-1, 1, 12, dtype=torch.float64),
    )
    d = ps.differentiate(solved("hull"))
    x = d.torch(y=2 * y, radius=radius, dictionary=D)
    np.testing.assert_allclose(x.detach().numpy(), d.result.x, atol=1e-12)
    (x @ v).backward()
    expected = d.vjp(v.numpy())
    np.testing.assert_allclose(y.grad, 2 * expected.y, rtol=1e-12)
    np.testing.assert_allclose(D.grad, expected.dictionary, rtol=1e-12)
    assert radius.grad.item() == pytest.approx(expected.radius)
    f, domain = ps.LeastSquares(torch.tensor(Y)), ps.conv(0.6 * ps.Dictionary(torch.tensor(X), signed=True))
    tensors = ps.differentiate(ps.minimize(f, domain, stop=STOP))
    assert isinstance(tensors.vjp(v).y, torch.Tensor)
    np.testing.assert_allclose(tensors.vjp(v).dictionary, expected.dictionary, atol=1e-10)
