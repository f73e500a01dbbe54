"""Learning where the signals are: tensors on a CUDA device, whose codes, sums and atoms stay there.

What a batch costs the host is a few numbers: its summary, how often each atom is used, and rare atoms' replacements.
Products of codes are those of dense matrices, which a device does faster than sparse ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pursuit.arguments import describe
from pursuit.arrays import Array, host
from pursuit.coding.request import Array as HostArray
from pursuit.dictionaries.learning import put_residuals
from pursuit.dictionaries.signals import LearningPlan, Signals, check_scale
from pursuit.dictionaries.updates import Statistics


@dataclass(frozen=True)
class DeviceSignals(Signals):
    """Rows of a tensor; batches of numbers shorter than float32 are read as float32."""

    Y: Any

    @classmethod
    def checked(cls, Y: Any, weights: Any = None, dtype: Any = None) -> DeviceSignals:
        if weights is not None:
            raise TypeError("weights were given with tensors on a device, which have none; leave them out, or Y.cpu().")
        if Y.ndim != 2 or not Y.shape[1] or not Y.is_floating_point():
            raise ValueError(
                f"Y is {describe(Y)} with dtype {Y.dtype}; give a matrix of floats whose rows are signals."
            )
        import torch

        if len(Y):
            ends = host(torch.stack(torch.aminmax(Y.detach())).double())
            check_scale(float(np.abs(ends).max()), np.float64 if Y.dtype == torch.float64 else np.float32)
        return cls(Y.detach())

    def rows(self, which: Any) -> DeviceSignals:
        import torch

        Y = self.Y[torch.from_numpy(which).to(self.Y.device)]
        return DeviceSignals(Y.to(self.dtype), each={name: values[which] for name, values in self.each.items()})

    def peaks(self, nonnegative: bool) -> HostArray:
        return host((self.Y.clamp(min=0) if nonnegative else abs(self.Y)).amax(1).double())

    def energy(self, R: Array) -> Array:
        return R.square().sum(1)

    def put(self, D: HostArray) -> Array:
        """A dictionary beside the signals."""
        import torch

        return torch.from_numpy(D).to(self.Y.device, self.dtype)

    @property
    def dtype(self) -> Any:
        """Of the arithmetic."""
        import torch

        return torch.promote_types(self.Y.dtype, torch.float32)


@dataclass(frozen=True)
class DeviceStatistics(Statistics):
    """X'X and Y'X as tensors; `uses` are on the host."""

    XX: Any
    YX: Any

    def improve(
        self, D: Any, penalised: bool = False, nonnegative: bool = False, passes: int = 1
    ) -> tuple[Array, Array]:
        """As `Statistics.improve`. Without limits on the atoms, a pass of block coordinate descent is one solution of
        triangular equations, tril(A) D' = B' - triu(A, 1) D'."""
        import torch

        old, diagonal = D, self.XX.diagonal()
        used = diagonal > 0
        A = self.XX + torch.diag_embed((~used).to(D.dtype))
        B, rows = torch.where(used, self.YX, D).mT, D.mT.contiguous()
        for _ in range(passes):
            if not (penalised or nonnegative):
                rows = torch.linalg.solve_triangular(A.tril(), B - A.triu(1) @ rows, upper=False)
                continue
            for k in np.flatnonzero(host(used)):
                d = rows[k] + (B[k] - A[k] @ rows) / diagonal[k]
                d = d.clamp(min=0) if nonnegative else d
                rows[k] = d / torch.linalg.vector_norm(d).clamp(min=1) if penalised else d
        factors = torch.linalg.vector_norm(rows, dim=1)
        D = torch.where(factors > 0, (rows / factors.clamp(min=torch.finfo(D.dtype).tiny)[:, None]).mT, old)
        return D, torch.where(used, factors, 1.0)

    def without(self, atoms: HostArray, uses: float) -> Statistics:
        factors = self.XX.new_ones(len(self.XX))
        factors[atoms] = 0
        counts = self.uses.copy()
        counts[atoms] = uses
        return replace(self.rescale(factors), uses=counts)


@dataclass(frozen=True)
class DeviceFit:
    """A batch, coded on a dictionary: what `batch_steps` asks of a `Fit`."""

    signals: DeviceSignals
    D: Array
    X: Array
    """Codes as a dense matrix."""
    R: Array
    summary: tuple[float, ...]
    """Objective, relative error and number of used atoms."""
    uses: HostArray

    @classmethod
    def of(cls, plan: LearningPlan, signals: DeviceSignals, D: Array) -> DeviceFit:
        import torch

        signals = replace(signals, Y=signals.Y.to(D.dtype))
        codes: Any = plan.encode(D, signals)
        X = codes.to_dense()
        R = signals.Y - X @ D.mT
        sums = [signals.energy(V).sum(dtype=torch.float64) for V in (signals.Y, R)]
        counts = (X != 0).sum(0)
        size, error, length, *uses = host(torch.cat([torch.stack([*sums, abs(X).sum(dtype=torch.float64)]), counts]))
        cost = (0.5 * error + plan.penalty * length) / max(len(signals), 1)
        summary = cost, float(np.sqrt(error / size)) if size else 0.0, int(np.count_nonzero(uses))
        return cls(signals, D, X, R, summary, np.array(uses))

    @property
    def statistics(self) -> DeviceStatistics:
        return DeviceStatistics(self.X.mT @ self.X, self.signals.Y.mT @ self.X, self.uses, len(self.signals))

    def replace_atoms(self, plan: LearningPlan, D: Array, atoms: HostArray, seed: int) -> HostArray:
        """Put residuals in the place of these atoms of D; returns the atoms that were replaced."""
        if not len(atoms):
            return atoms
        import torch

        def read_residuals(rows: HostArray) -> HostArray:
            return host(self.R[torch.from_numpy(rows).to(D.device)])

        columns: Any = np.zeros((len(D), len(atoms)))
        energies = host(self.signals.energy(self.R))
        replaced = put_residuals(plan, columns, np.arange(len(atoms)), energies, read_residuals, seed)
        D[:, atoms[replaced]] = torch.from_numpy(columns[:, replaced]).to(D.device, D.dtype)
        return np.asarray(atoms[replaced])
