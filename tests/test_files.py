"""Locks of files: one writer at a time, and none is held by the dead."""

import subprocess
import sys
import threading

import pursuit as ps
from pursuit.files import locked

WAIT = """
import sys, time
from pursuit.files import locked
with locked(sys.argv[1]):
    print("held", flush=True)
    time.sleep(600)
"""


def test_one_thread_at_a_time_is_inside_and_no_lock_stays(tmp_path):
    inside, most = [], []

    def enter():
        for _ in range(50):
            with locked(tmp_path / "file"):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) == 200 and max(most) == 1 and not list(tmp_path.iterdir())


def test_a_lock_ends_with_the_process_that_held_it(tmp_path):
    path = tmp_path / "file"
    owner = subprocess.Popen([sys.executable, "-c", WAIT, str(path)], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None and owner.stdout.readline() == "held\n"
    owner.kill()
    owner.wait()
    owner.stdout.close()
    with locked(path):
        assert [file.name for file in tmp_path.iterdir()] == [".file.lock"]
    assert not list(tmp_path.iterdir())


def test_two_runs_with_one_checkpoint_both_end_and_leave_a_whole_file(tmp_path):
    f, domain, path = ps.LeastSquares([0.9, 0.8, 0.1]), ps.conv(ps.Simplex(3)), tmp_path / "run.npz"
    update, found = ps.Plain(ps.OpenLoop()), []

    def run():
        stop = ps.Stop(iterations=60, rgap=None)
        found.append(ps.minimize(f, domain, update, stop=stop, checkpoint=path, every=0.0))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [r.iterations for r in found] == [60, 60, 60]
    assert ps.minimize(f, domain, update, stop=ps.Stop(iterations=61, rgap=None), checkpoint=path).iterations == 61
    assert not list(tmp_path.glob(".*"))
