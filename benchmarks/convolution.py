"""Events in recordings beside other packages, where they are installed: `python benchmarks/convolution.py [case ...]`.

Processor seconds on one thread (set OPENBLAS_NUM_THREADS=1), one call each. Recordings of spikes are SpikeInterface's
synthetic ground truth; parameters of ours were chosen on seeds 1 to 6, `held` are three others.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import peer

import pursuit as ps

RATE = 30_000.0


def timed(run):
    start = time.process_time()
    answer = run()
    return time.process_time() - start, answer


def peak_memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def spikes(channels, units, seconds, seed, methods):
    core = peer("spikeinterface.core")
    if core is None:
        print("spikes: spikeinterface is not installed")
        return
    from spikeinterface.comparison import compare_sorter_to_ground_truth
    from spikeinterface.core import NumpySorting, Templates, get_noise_levels
    from spikeinterface.sortingcomponents.matching import find_spikes_from_templates

    from pursuit.spikes import register

    register()
    recording, truth = core.generate_ground_truth_recording(
        durations=[seconds], num_channels=channels, num_units=units, seed=seed, sampling_frequency=RATE
    )
    dense = np.asarray(recording.templates)
    before = int(np.ravel(recording._kwargs["nbefore"])[0])
    templates = Templates(dense, RATE, before, unit_ids=truth.unit_ids, probe=recording.get_probe(),
                          channel_ids=recording.channel_ids, is_in_uV=True)  # fmt: skip
    noise = get_noise_levels(recording, return_in_uV=False)
    cached = core.NumpyRecording([recording.get_traces()], RATE, channel_ids=recording.channel_ids)
    cached.set_probe(recording.get_probe(), in_place=True)
    cached.set_channel_gains(1.0)
    cached.set_channel_offsets(0.0)
    for method in methods:
        name, *rank = method.split(":")
        options = {"rank": int(rank[0])} if rank else {}
        if name in ("tdc-peeler", "pursuit"):
            options |= {"noise_levels": noise}
        job = {"n_jobs": 1, "chunk_duration": "1s", "progress_bar": False}
        try:
            took, found = timed(
                lambda name=name, options=options, job=job: find_spikes_from_templates(
                    cached, templates, method=name, method_kwargs=options, job_kwargs=job
                )
            )
        except Exception as problem:  # a peer that does not run is a line of the table
            print(f"  {method:<12} does not run: {type(problem).__name__}: {str(problem)[:90]}")
            continue
        sorting = NumpySorting.from_samples_and_labels(
            [found["sample_index"]], [truth.unit_ids[found["cluster_index"]]], RATE
        )
        compared = compare_sorter_to_ground_truth(truth, sorting, exhaustive_gt=True)
        accuracy = compared.get_performance(method="by_unit")["accuracy"].astype(float).mean()
        print(f"  {method:<12} {took:8.2f} s  accuracy {accuracy:.4f}  {len(found)} spikes", flush=True)


def small():
    print("32 channels, 20 units, 10 s")
    spikes(32, 20, 10.0, 0, ["pursuit", "pursuit:3", "pursuit:5", "wobble", "circus-omp", "tdc-peeler"])


def large():
    print("384 channels, 192 units, 20 s")
    spikes(384, 192, 20.0, 0, ["pursuit", "pursuit:3", "pursuit:5", "wobble"])


def held():
    for seed in (101, 102, 103):
        print(f"32 channels, 20 units, 10 s, seed {seed}, held back")
        spikes(32, 20, 10.0, seed, ["pursuit", "wobble"])


def many_templates():
    print("17,345 templates of 61 samples on 10 to 20 of 384 channels, 1 s")
    rng = np.random.default_rng(0)
    waveforms, channels = [], []
    for _ in range(17_345):
        n = int(rng.integers(10, 21))
        first = int(rng.integers(0, 384 - n))
        u = np.exp(-0.5 * ((np.arange(n) - n / 2) / 3) ** 2)
        waveforms.append(np.multiply.outer(u, rng.standard_normal(61) * np.hanning(61)))
        channels.append(np.arange(first, first + n))
    y = 0.3 * rng.standard_normal((384, 30_000), dtype=np.float32)
    for _ in range(2000):
        k, t = int(rng.integers(17_345)), int(rng.integers(0, 29_900))
        y[channels[k], t : t + 61] += waveforms[k]
    A = ps.Convolutional(waveforms, channels=channels, shape=y.shape, rank=1, memory=1 << 29)
    took, events = timed(lambda: ps.encode(A, y, method="mp", threshold=12.0, prior=2.0, n_jobs=1))
    print(f"  {took:.1f} s, {len(events)} events, most memory {peak_memory():.2f} GiB", flush=True)


def long_recording(seconds=600, checkpoint=None):
    """A recording made on the fly. Without `checkpoint` two other processes do it: the first is killed half-way."""
    if checkpoint is None:
        return killed_and_resumed(seconds)
    rng = np.random.default_rng(0)
    waveforms = [rng.standard_normal((12, 1)) * rng.standard_normal((1, 61)) * np.hanning(61) for _ in range(100)]
    channels = [np.arange(k * 3, k * 3 + 12) for k in range(100)]
    A = ps.Convolutional(waveforms, channels=channels, shape=(384, int(seconds * RATE)), rank=1)
    reading = 0.0

    def read(start, stop):  # every stretch of 1,000 samples has its own seed
        nonlocal reading
        begin, first = time.process_time(), start // 1000
        pieces = [
            np.random.default_rng(i).standard_normal((384, 1000), dtype=np.float32)
            for i in range(first, -(-stop // 1000))
        ]
        for i, piece in enumerate(pieces, first):
            k = i % 100
            piece[channels[k], 400:461] += 2 * waveforms[k]
        block = np.concatenate(pieces, axis=1)[:, start - first * 1000 : stop - first * 1000]
        reading += time.process_time() - begin
        return block

    took, events = timed(
        lambda: ps.encode(A, read, method="mp", threshold=60.0, prior=1.0, n_jobs=1, checkpoint=checkpoint)
    )
    planted = int(seconds * RATE) // 1000
    right = np.isin(np.arange(planted) * 1000 + 400, events.position[events.template == events.position // 1000 % 100])
    print(f"  {took - reading:.1f} s, and {reading:.1f} s to make the samples; {len(events)} events, {right.sum()} of "
          f"{planted} planted ones, most memory {peak_memory():.2f} GiB", flush=True)  # fmt: skip
    return None


def killed_and_resumed(seconds):
    print(f"384 channels, {seconds} s, generated on the fly, killed and resumed")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events"
        command = [sys.executable, __file__, "long_recording", str(seconds), str(path)]
        first = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        half = 600 * seconds  # bytes, about half of the events
        while first.poll() is None and not (path.exists() and path.stat().st_size > half):
            time.sleep(0.1)
        first.kill()
        first.wait()
        print(f"  killed after {path.stat().st_size // 40} events; resumed:", flush=True)
        subprocess.run(command, check=True)


def lasso():
    print("Lasso, 22,050 samples, 50 templates")
    rng = np.random.default_rng(0)
    templates = rng.standard_normal((50, 50)) * np.hanning(52)[1:-1]
    templates /= np.linalg.norm(templates, axis=1, keepdims=True)
    y = 0.05 * rng.standard_normal(22_050)
    for _ in range(1000):
        t = int(rng.integers(0, 22_000))
        y[t : t + 50] += rng.uniform(0.5, 2) * templates[rng.integers(50)]
    A = ps.Convolutional(templates, shape=y.shape)
    for fraction in (0.3, 0.1):
        penalty = fraction * float(np.abs(A.scores(y)).max())
        took, events = timed(lambda penalty=penalty: ps.encode(A, y, method="lasso", penalty=penalty))
        r = y - A.synthesize(events)
        value = 0.5 * r @ r + penalty * np.abs(events.weight).sum()
        print(f"  penalty {fraction} of the largest: {took:.2f} s, {len(events)} events, "
              f"relative gap {events.gap / value:.1e}", flush=True)  # fmt: skip
        sporco_lasso(templates, y, penalty, value)


def sporco_lasso(templates, y, penalty, best):
    """By ADMM; its boundary is circular, so that zeros are appended."""
    cbpdn = peer("sporco.admm.cbpdn")
    if cbpdn is None:
        print("  sporco is not installed")
        return
    padded = np.concatenate([y, np.zeros(templates.shape[1])])
    for iterations in (50, 200):
        options = cbpdn.ConvBPDN.Options({"MaxMainIter": iterations, "RelStopTol": 1e-9, "AutoRho": {"Enabled": True}})
        solver = cbpdn.ConvBPDN(templates.T.copy(), padded, penalty, options, dimN=1)
        took, _ = timed(solver.solve)
        z = np.squeeze(solver.getcoef())
        fit = np.squeeze(solver.reconstruct())
        value = 0.5 * np.sum((padded - fit) ** 2) + penalty * np.abs(z).sum()
        print(
            f"    sporco, {iterations} iterations: {took:.2f} s, objective {value / best - 1:.1e} above ours",
            flush=True,
        )


def learning():
    print("50 planted templates of 40 samples in 100,000")
    from scipy.ndimage import gaussian_filter1d

    from pursuit.dictionaries.stretches import likeness

    for seed in (0, 1):
        rng = np.random.default_rng(seed)
        planted = gaussian_filter1d(rng.standard_normal((50, 40)), 0.7, axis=1) * np.hanning(42)[1:-1]
        planted /= np.linalg.norm(planted, axis=1, keepdims=True)
        y = 0.05 * rng.standard_normal(100_000)
        for _ in range(3000):
            k, t = rng.integers(50), rng.integers(100_000 - 40)
            y[t : t + 40] += rng.uniform(0.7, 1.5) * planted[k]
        took, learned = timed(
            lambda y=y: ps.learn(y, templates=50, length=40, convolutional=True, code={"threshold": 0.15}, n_jobs=1)
        )
        found = sum(max(likeness(p[None], d[None]) for d in learned.templates) > 0.95 for p in planted)
        print(f"  seed {seed}: {found} of 50 recovered, {took:.1f} s", flush=True)


def simulated():
    """The Lasso's alternation on alphacsc's own simulation; its trials are apart by as many zeros as an atom has."""
    simulate, alphacsc = peer("alphacsc.simulate"), peer("alphacsc")
    print("alphacsc's simulation: 10 trials of 2,000 samples, 2 atoms of 64, penalty 0.1")
    if alphacsc is None:
        print("  alphacsc is not installed")
        return
    for seed in (0, 1):
        X, planted, _ = simulate.simulate_data(10, 2000, 64, 2, random_state=seed)
        X = X + 0.01 * np.random.default_rng(seed).standard_normal(X.shape)
        y = np.pad(X, ((0, 0), (0, 64))).ravel()
        code = {"method": "lasso", "penalty": 0.1, "positive": True}
        took, ours = timed(
            lambda y=y, code=code: ps.learn(y, templates=2, length=64, convolutional=True, code=code, n_jobs=1)
        )
        print(
            f"  seed {seed}: pursuit {took:.1f} s, objective {ours.objective[-1]:.3f}, "
            f"likeness {alike(planted, ours.templates)}",
            flush=True,
        )
        took, (costs, _, d, *_) = timed(
            lambda X=X, seed=seed: alphacsc.learn_d_z(X, 2, 64, reg=0.1, n_iter=40, random_state=seed, verbose=0)
        )
        print(f"    alphacsc: {took:.1f} s, objective {costs[-1]:.3f}, likeness {alike(planted, d)}", flush=True)


def alike(planted, templates):
    from pursuit.dictionaries.stretches import likeness

    norms = [np.linalg.norm(d) for d in (*planted, *templates)]
    units = [d[None] / n for d, n in zip((*planted, *templates), norms, strict=True) if n > 0]
    return [round(max(float(likeness(p, d)) for d in units[len(planted) :]), 3) for p in units[: len(planted)]]


CASES = {f.__name__: f for f in (small, large, held, many_templates, long_recording, lasso, learning, simulated)}

if __name__ == "__main__":
    if sys.argv[1:2] == ["long_recording"]:  # seconds and a checkpoint may follow
        long_recording(*map(int, sys.argv[2:3]), *sys.argv[3:])
    else:
        for case in sys.argv[1:] or CASES:
            CASES[case]()
