"""Files that earlier versions wrote are read by this one, and say what they said (tools/store.py wrote them)."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import pursuit as ps

pytest.importorskip("sklearn")
sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))
import store

VERSIONS = sorted(folder for folder in store.FOLDER.iterdir() if folder.is_dir())
MODELS = [(folder, file) for folder in VERSIONS for file in sorted(folder.glob("*.json"))]
X, _ = store.data()


@pytest.mark.parametrize(("folder", "file"), MODELS, ids=[f"{f.name}-{p.stem}" for f, p in MODELS])
def test_stored_models_are_read_and_predict_as_they_did(folder, file):
    model, expected = ps.load(file), np.load(folder / "expected.npz")
    if file.stem in expected:
        found = model.predict(X)
        assert (
            (found == expected[file.stem]).all() if found.dtype.kind == "U" else np.allclose(found, expected[file.stem])
        )
    else:
        assert type(model) is type(store.models()[file.stem])


@pytest.mark.parametrize("folder", VERSIONS, ids=lambda folder: folder.name)
def test_stored_runs_go_on(folder, tmp_path):
    shutil.copy(folder / "run.npz", tmp_path)
    stop = ps.Stop(iterations=5, rgap=None)
    r = ps.minimize(*store.problem(), ps.Plain(ps.LineSearch()), stop=stop, checkpoint=tmp_path / "run.npz")
    whole = ps.minimize(*store.problem(), ps.Plain(ps.LineSearch()), stop=stop)
    assert r.iterations == whole.iterations == 5
    assert r.value == pytest.approx(whole.value, rel=1e-12)


@pytest.mark.parametrize("folder", VERSIONS, ids=lambda folder: folder.name)
def test_stored_codes_are_read(folder):
    pytest.importorskip("zarr")
    codes = ps.StoredCodes(folder / "codes").matrix().toarray()
    np.testing.assert_allclose(codes, np.load(folder / "expected.npz")["codes"], atol=1e-12)


def test_this_version_has_files_in_the_repository():
    assert store.FOLDER / ps.__version__ in VERSIONS
