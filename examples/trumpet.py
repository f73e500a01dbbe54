"""Sparse decomposition of sound: a trumpet as a few hundred short waves.

An atom is a wave under a window of 46, 93 or 186 ms, of any phase: a direction in the plane of a cosine and a sine. So
atoms are `Groups` of two, seen through the map to sound. These 200,000 pairs are never stored; the oracle takes Fourier
transforms. OMP refits all weights after each oracle call, which `several=16` lets name 16 atoms.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.io import wavfile
from scipy.sparse.linalg import LinearOperator

import pursuit as ps


class Waves(LinearOperator):  # from coefficients to sound: windows a quarter of a width apart, times cosines and sines
    def __init__(self, n: int, width: int) -> None:
        self.window = np.sin(np.pi * np.arange(width) / width) ** 2 * np.sqrt(16 / (3 * width))
        self.frames = np.arange(width // 2, n + width // 2, width // 4)[:, None] + np.arange(width)
        super().__init__(np.float64, (n, len(self.frames) * (width - 2)))

    def _rmatvec(self, sound: np.ndarray) -> np.ndarray:
        frames = np.pad(sound.ravel(), len(self.window))[self.frames]
        return np.fft.rfft(frames * self.window)[:, 1:-1].copy().view(float).ravel()

    def _matvec(self, coef: np.ndarray) -> np.ndarray:
        width, spectra = len(self.window), coef.reshape(len(self.frames), -1).copy().view(complex)
        sound = np.zeros(self.shape[0] + 2 * width)
        for k in np.flatnonzero(spectra.any(axis=1)):
            sound[self.frames[k]] += np.fft.irfft(np.pad(spectra[k], 1)) * self.window * width / 2
        return sound[width:-width]


def main() -> float:
    rate, recording = wavfile.read(Path(__file__).parent / "data" / "trumpet.wav")
    y, widths = recording / 2**15, (512, 1024, 2048)
    A, B, C = (ps.Groups(np.arange(M.shape[1]) // 2).through(M) for M in (Waves(len(y), w) for w in widths))
    r = ps.minimize(ps.LeastSquares(y), ps.lin(A | B | C), ps.FullyCorrective(several=16), stop=ps.Stop(atoms=600))
    snr = float(-10 * np.log10(2 * r.value / (y @ y)))
    print(f"{len(y)} samples, {len(r.atoms)} atoms, {r.oracle_calls} oracle calls: signal to noise {snr:.1f} dB")
    figure, axes = plt.subplots(1, 3, figsize=(14, 4), layout="constrained", sharex=True, sharey=True)
    for ax, title, sound in ((axes[0], "recording", y), (axes[1], f"{len(r.atoms)} atoms: {snr:.1f} dB", r.x)):
        ax.specgram(sound + 1e-9 * y, NFFT=512, noverlap=384, Fs=rate, vmin=-120, vmax=-30, cmap="magma")
        ax.set(title=title, xlabel="seconds", ylabel="frequency in Hz", facecolor="black")
    for width, coef, colour in zip(widths, (*r.coef[0], r.coef[1]), ("C3", "C1", "C0"), strict=True):
        (k, j), hop = np.nonzero(coef.reshape(-1, width // 2 - 1, 2).any(axis=2)), width / 4 / rate
        axes[2].hlines((j + 1) * rate / width, (k - 1) * hop, (k + 1) * hop, colour, label=f"{4000 * hop:.0f} ms")
    axes[2].set(title="the atoms", xlim=(0, len(y) / rate), ylim=(0, 4000), xlabel="seconds")
    axes[2].legend(loc="upper right", title="window")
    Path("out").mkdir(exist_ok=True)
    figure.savefig("out/trumpet.png", dpi=150)
    plt.close(figure)
    return snr


if __name__ == "__main__":
    main()
