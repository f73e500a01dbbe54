"""Files of runs that are damaged, of another problem or without a state; open loops after unproved answers."""

import zipfile

import numpy as np
import pytest

import pursuit as ps

F = ps.LeastSquares([0.9, 0.8])
OPEN_LOOP = ps.Plain(ps.OpenLoop())


def polytope(b):
    return ps.conv(ps.Polytope([[1.0, 1.0]], [b], bounds=(0, 1)))


def run(domain, iterations, **options):
    return ps.minimize(F, domain, OPEN_LOOP, stop=ps.Stop(iterations=iterations, rgap=None), **options)


@pytest.mark.parametrize("iterations", [5, 7, 20])
def test_the_run_of_another_polytope_is_refused_although_its_oracle_answers_alike(iterations, tmp_path):
    run(polytope(5.0), iterations, checkpoint=tmp_path / "run.npz")
    with pytest.raises(ValueError, match=r"is the checkpoint of another run: .*_b of summand 0 of domain differs"):
        run(polytope(1.2), iterations + 1, checkpoint=tmp_path / "run.npz")
    kept = run(polytope(5.0), iterations, keep=True)
    assert run(polytope(5.0), iterations + 1, start=kept).iterations == iterations + 1
    with pytest.raises(ValueError, match="start"):  # only a first point, and outside
        run(polytope(1.2), 0, start=kept)


def test_a_flipped_bit_in_the_directory_falls_back_on_the_previous_file(tmp_path):
    file, previous = tmp_path / "run.npz", tmp_path / "run.previous.npz"
    good = run(ps.conv(ps.Simplex(2)), 5, keep=True).save(file).read_bytes()
    with zipfile.ZipFile(file) as archive:
        first = archive.start_dir
    for place in range(first, len(good), 7):
        file.write_bytes(good[:place] + bytes([good[place] ^ 8]) + good[place + 1 :])
        previous.write_bytes(good)
        assert run(ps.conv(ps.Simplex(2)), 6, checkpoint=file).iterations == 6


def test_a_compressed_archive_is_no_checkpoint(tmp_path):
    np.savez_compressed(tmp_path / "run.npz", text=np.zeros(1 << 20, dtype=np.uint8))
    with pytest.raises(ValueError, match="is no checkpoint of a run, or it is damaged"):
        run(ps.conv(ps.Simplex(2)), 5, checkpoint=tmp_path / "run.npz")


def test_the_file_of_a_run_that_was_not_kept_begins_a_new_run_at_its_point(tmp_path):
    domain = ps.conv(ps.SignedBasis(2))
    r = run(domain, 9)
    again = run(domain, 0, checkpoint=r.save(tmp_path / "run.npz"))
    assert not r.memory and again.iterations == 0 and len(again.trace) == 1
    np.testing.assert_array_equal(again.x, r.x)


@pytest.mark.parametrize("oracle", [ps.Lazy(), ps.RandomAtom()], ids=["lazy", "random"])
def test_open_loops_shorten_their_steps_after_answers_of_which_nothing_is_proved(oracle):
    f, domain = ps.LeastSquares([0.2] * 5), ps.conv(ps.Simplex(5))
    r = ps.minimize(f, domain, OPEN_LOOP, oracle=oracle, stop=ps.Stop(iterations=300))
    assert r.value < 0.02
