"""Proofs of small problems over every set and objective, changed at random: does `pursuit.verify` accept a false claim?

python tools/proofs.py --count 10000
"""

from __future__ import annotations

import argparse
import collections
import copy
import json
import math
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import pursuit as ps
from pursuit import verify

Document = dict[str, Any]


def problems(rng: np.random.Generator) -> Iterator[tuple[str, Any, Any]]:  # noqa: PLR0915
    """Objectives and domains: each set of which `pursuit.verify` has a rule, each objective, each kind of domain."""
    n, X, y = 8, rng.standard_normal((8, 12)), rng.standard_normal(8)
    least, signs, counts = ps.LeastSquares(y), np.sign(y + 0.1), rng.poisson(2.0, 8).astype(float)
    weights, ones = rng.uniform(0.2, 3.0, 8), ps.lin(ps.Dictionary(np.ones((8, 1))), counted=False)
    ball, few = ps.conv(1.5 * ps.Dictionary(X, signed=True)), ps.Dictionary(X[:, :3])
    H = X[:, :8] @ X[:, :8].T + np.eye(8)
    labels = np.arange(6) % 3
    matrix, target = ps.RankOne((4, 3)), rng.standard_normal((4, 3))
    square = rng.standard_normal((4, 4))
    rows, columns = np.array([0, 0, 1, 2, 3, 3]), np.array([0, 1, 1, 2, 0, 2])
    edges = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)]
    demand = np.zeros((4, 4))
    demand[0, 3], demand[1, 3] = 2.0, 1.0
    yield "hull", least, ball
    yield "hull and span", least, ball + ones
    yield "span", least, ps.lin(few)
    yield "cone", least, ps.cone(few)
    yield "cone and span", least, ps.cone(few) + ones
    yield "penalty", least, ps.penalty(0.3 * ps.Dictionary(X, signed=True)) + ones
    yield "rho", ps.LeastSquares(y), ps.cone(ps.Dictionary(X), rho=4.0)
    yield "rho of a span", ps.LeastSquares(y), ps.lin(ps.Dictionary(X), rho=4.0)
    yield "sparse", least, ps.conv(ps.Dictionary(sp.random_array((8, 20), density=0.4, rng=rng).tocsc(), signed=True))
    yield "weighted", ps.LeastSquares(y, weights), ball + ones
    yield "huber", ps.Huber(y, 0.4, weights), ball + ones
    yield "logistic", ps.Logistic(signs, weights), ball + ones
    yield "poisson", ps.Poisson(counts), ball + ones
    yield "multinomial", ps.Multinomial(labels), ps.conv(2 * ps.RankOne((6, 3)))
    yield "multinomial model", ps.Multinomial(labels), ps.penalty(0.1 * ps.SignedBasis(6).through(X[:6, :2], columns=3))
    yield "quadratic", ps.Quadratic(H, y), ball
    yield "quadratic over a span", ps.Quadratic(H, y), ps.lin(few)
    yield "ridge", ps.Ridge(least, 12), ps.penalty(0.2 * ps.SignedBasis(12).through(X, l2=0.5))
    yield "simplex", least, ps.conv(2 * ps.Simplex(n))
    yield "signed basis", least, ps.conv(-1.2 * ps.SignedBasis(n))
    yield "box", least, ps.conv(ps.Box(-0.3 * np.ones(n), 0.4 * np.ones(n)))
    yield "ball 1", least, ps.conv(0.7 * ps.Ball(n, 1))
    yield "ball 2", least, ps.conv(0.7 * ps.Ball(n, 2))
    yield "ball inf", least, ps.penalty(0.3 * ps.Ball(n, np.inf))
    yield "groups", least, ps.conv(ps.Groups([[0, 1, 2], [3, 4], [5, 6, 7]], [1.0, 2.0, 0.5]))
    yield "groups of a model", least, ps.penalty(0.4 * ps.Groups(np.arange(12) // 3).through(X))
    yield "k-sparse", least, ps.conv(0.3 * ps.KSparse(n, 3))
    yield "k-support", least, ps.conv(0.8 * ps.KSupport(n, 3))
    yield "hypersimplex", least, ps.conv(0.5 * ps.Hypersimplex(n, 3))
    yield "rank one", ps.LeastSquares(target), ps.conv(1.3 * matrix)
    yield "nuclear penalty", ps.LeastSquares(target), ps.penalty(0.5 * matrix)
    yield "rank one at entries", ps.LeastSquares(y[:6]), ps.conv(1.3 * matrix.at(rows, columns))
    yield "spectrahedron", ps.LeastSquares(square), ps.conv(1.3 * ps.Spectrahedron(4))
    yield "symmetric rank one", ps.LeastSquares(square), ps.conv(0.8 * ps.SymmetricRankOne(4))
    yield "permutations", ps.LeastSquares(square), ps.conv(ps.Permutations(4))
    yield "transport", ps.LeastSquares(target), ps.conv(ps.Transport([0.25, 0.25, 0.2, 0.3], [0.5, 0.25, 0.25]))
    yield "polytope", ps.LeastSquares(y[:3]), ps.conv(ps.Polytope([[1.0, 2.0, 1.0]], [2.0], bounds=(0, 1.5)))
    yield "polytope, open", ps.LeastSquares(y[:3]), ps.conv(ps.Polytope([[1.0, 2.0, 1.0]], [2.0]))
    yield "paths", ps.LeastSquares(np.zeros(5)), ps.conv(ps.Paths(edges, 0, 3))
    yield "flows", ps.LeastSquares(np.zeros(5)), ps.conv(ps.Flows(edges, demand))
    yield "product", ps.LeastSquares(rng.standard_normal(7)), ps.product(ps.conv(ps.Simplex(3)), ps.conv(ps.Ball(4, 2)))
    entries = ps.Dictionary(np.eye(12).reshape(4, 3, 12), signed=True)
    yield "low rank and sparse", ps.LeastSquares(target), ps.conv(matrix) + ps.penalty(0.3 * entries)
    pieces = ps.product(ball, ps.penalty(0.2 * ps.Dictionary(X[:4], signed=True)), ps.cone(ps.Dictionary(X[:3, :2])))
    yield "pieces seen through maps", ps.LeastSquares(rng.standard_normal(15)), pieces
    yield "trusted", least, ps.conv(ps.Ball(n, 3))


class Case:
    """A proof in JSON, the data that it names, and what is proved of its problem."""

    def __init__(self, name: str, f: Any, domain: Any, folder: str) -> None:
        self.name = name
        self.result = ps.minimize(f, domain, stop=ps.Stop(rgap=1e-9, iterations=500))
        self.proof = self.result.certificate
        self.path = self.proof.save(f"{folder}/{name}.json", data=f"{folder}/{name}")
        self.files = sorted(str(file) for file in Path(f"{folder}/{name}").iterdir())
        self.document = json.loads(self.path.read_text())
        self.data = {
            verify.digest(values): (path, shape, values) for path, shape, values in map(verify.load, self.files)
        }

    def judge(self, document: Document) -> tuple[bool, float, float]:
        """Whether the checker accepts a changed claim, and the bounds that it proves."""
        problem = verify.Problem(document, verify.reader(self.data, []))
        low, high = verify.prove(problem, document["dual"]), verify.value(problem, document["point"])[0]
        claim = document["claim"]
        lower, value = verify.number(claim, "lower"), verify.number(claim, "value")
        holds = low is not None and low >= lower and high <= value
        return holds, -math.inf if low is None else verify.nearest(low, -math.inf), verify.nearest(high, math.inf)


def cases(folder: str, seed: int = 0) -> list[Case]:
    """A proof for each of the problems."""
    return [Case(name, f, domain, folder) for name, f, domain in problems(np.random.default_rng(seed))]


def _lists(value: Any) -> Iterator[list[Any]]:
    """The lists of numbers within a value."""
    if isinstance(value, list) and value and all(isinstance(v, int | float) for v in value):
        yield value
    elif isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _lists(each)


def jolt(rng: np.random.Generator, numbers: list[Any]) -> None:
    """Change some numbers, in place."""
    a, way = np.array(numbers, dtype=float), rng.integers(9)
    i = rng.integers(len(a))
    size = float(np.abs(a).max()) or 1.0
    if way == 0:
        a *= 1.0 + 1e-8 * rng.standard_normal(a.shape)
    elif way == 1:
        a += 1e-3 * size * rng.standard_normal(a.shape)
    elif way == 2:
        a = -a
    elif way == 3:
        a *= 10.0 ** rng.uniform(-3, 3)
    elif way == 4:
        a = rng.permutation(a)
    elif way == 5:
        a[i] = rng.choice([0.0, 1e300, -1e300, 5e-324, 1.0])
    elif way == 6:
        a = size * rng.standard_normal(a.shape)
    elif way == 7:
        a[i] = np.nextafter(a[i], rng.choice([-math.inf, math.inf]))
    numbers[:] = a[:-1].tolist() if way == 8 else a.tolist()


def mutate(rng: np.random.Generator, case: Case) -> tuple[str, Document]:
    """What is changed, and the proof, whose claim is false."""
    document, claim = copy.deepcopy(case.document), case.document["claim"]
    lower, value = claim["lower"], claim["value"]
    step = 1e-6 * max(abs(value), abs(lower), 1e-30)
    trusted = case.name == "trusted"  # what its oracle says, and its point, may be wrong
    kind = "claim" if trusted else str(rng.choice(["claim", "dual", "point", "both", "problem"]))
    if kind in ("dual", "both"):
        lists = list(_lists(document["dual"]))
        jolt(rng, lists[rng.integers(len(lists))])
        for key in ("mu", "sigma", "least", "lowest"):
            for hint in (document["dual"], *document["dual"]["hints"]):
                if key in hint and key != "lowest" and rng.random() < 0.5:
                    hint[key] = float(rng.choice([0.0, -1.0, 1e-3, 1e9, 2 * hint[key]]))
        document["claim"]["lower"] = value + step  # above the value of a point of the domain
    if kind in ("point", "both"):
        lists = list(_lists(document["point"]))
        jolt(rng, lists[rng.integers(len(lists))])
        if kind == "point":
            document["claim"]["value"] = lower - step  # below what is proved of all points
    if kind == "claim":
        document["claim"] = {"lower": value + step, "value": value}
    if kind == "problem":  # the changed problem may have another minimum: its claim must hold of its own point
        lists = list(_lists({"f": document["f"], "domain": document["domain"]}))
        if lists:
            jolt(rng, lists[rng.integers(len(lists))])
        document["claim"]["lower"] = document["claim"]["value"] + step
    return kind, document


def write(archive: str) -> None:
    """Keep the proofs, and the data that they name, with claims that are exactly what is proved."""
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as kept:
        for case in cases(folder):
            kept.write(case.path, f"{case.name}/proof.json")
            for file in case.files:
                kept.write(file, f"{case.name}/{Path(file).name}")


def accepted(count: int, seed: int, folder: str) -> collections.Counter[tuple[str, str]]:
    """What the checker says of so many changed proofs, all of whose claims are false."""
    rng, found = np.random.default_rng(seed), collections.Counter[tuple[str, str]]()
    listed = cases(folder)
    for i in range(count):
        case = listed[i % len(listed)]
        kind, document = mutate(rng, case)
        try:
            holds, low, high = case.judge(document)
        except (verify.Refused, *verify.MISTAKES):
            found[kind, "refused"] += 1
            continue
        claim, allowed = case.document["claim"], 1e-6 * abs(high)  # of points that miss their constraints by as much
        unsound = kind != "problem" and (low > claim["value"] or high < claim["lower"] - allowed)
        unsound |= low > high + allowed
        found[kind, "ACCEPTED" if holds else "UNSOUND" if unsound else "not proved"] += 1
        if holds or unsound:
            print(case.name, kind, low, high, case.document["claim"])
    return found


def malformed(rng: np.random.Generator, text: bytes) -> bytes:
    """A file that is no proof, or a damaged one."""
    way, i = rng.integers(10), int(rng.integers(len(text)))
    if way == 0:
        return text[:i]
    if way == 1:
        return text[:i] + bytes(rng.integers(0, 256, 8, dtype=np.uint8)) + text[i + 8 :]
    if way == 2:
        return b"[" * int(rng.integers(1, 100_000))
    if way == 3:
        return b'{"a":' * int(rng.integers(10, 100_000)) + b"1"
    if way == 4:
        return bytes(rng.integers(0, 256, int(rng.integers(0, 2000)), dtype=np.uint8))
    document = json.loads(text)
    place: Any = document
    key: Any = None
    while isinstance(place, list | dict) and place:
        owner, key = place, rng.choice(list(place)) if isinstance(place, dict) else int(rng.integers(len(place)))
        place = place[str(key) if isinstance(place, dict) else key]
        if rng.random() < 0.4:
            break
    key = str(key) if isinstance(owner, dict) else key
    if way == 5:
        del owner[key]
    else:
        values = [None, "x", -1, 1e308, [], {}, True, [[[]]], 10**400, "NaN", 3.5, {"sha256": "0", "shape": [1]}, -5]
        owner[key] = values[rng.integers(len(values))]
    if way == 9:
        return json.dumps(document).replace("1", "Infinity", 1).encode()
    return json.dumps(document).encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", metavar="ZIP", help="keep the unchanged proofs, for the tests")
    options = parser.parse_args()
    if options.write:
        write(options.write)
        return
    with tempfile.TemporaryDirectory() as folder:
        found = accepted(options.count, options.seed, folder)
    for key, count in sorted(found.items()):
        print(*key, count)
    sys.exit(int(any(word in ("ACCEPTED", "UNSOUND") for _, word in found)))


if __name__ == "__main__":
    main()
